import { BYTES_FIELD_HEADER_MAX, writeBytesFieldHeader } from "@forage/common/bytes-field";
import { UploadRequest, type UploadResponse } from "@forage/proto/forage/workspaces/v1/workspaces";

/** The part of a gRPC call that an upload uses. Messages are encoded already. */
export interface UploadCall {
  write(message: Buffer, onAccepted: () => void): unknown;
  end(): void;
  cancel(): void;
}

/** Opens the call. `answered` is called once. */
export type OpenUpload = (
  answered: (error: Error | null, response: UploadResponse | undefined) => void,
) => UploadCall;

/** Well below gRPC's usual limit of 4 MiB for a message, and large enough to keep the number of messages low. */
const PART_BYTES = 256 * 1024;
/** The number of buffers. One is filled while the other is being sent. */
const PART_BUFFERS = 2;
/** The field number of `UploadRequest.data`. */
const DATA_FIELD = 2;

/**
 * Sends the messages of one upload. Data is collected into parts in two buffers that are reused: the garbage of a new
 * buffer for each part would cost more than everything else.
 */
export class UploadStream {
  /** The response. Rejects with the call's error. */
  readonly response: Promise<UploadResponse>;
  readonly #call: UploadCall;
  readonly #signal: AbortSignal;
  readonly #free: Buffer[];
  #filling: { readonly buffer: Buffer; bytes: number } | undefined;
  #settled = false;
  #wake = (): void => undefined;

  constructor(open: OpenUpload, signal: AbortSignal) {
    const { promise, resolve, reject } = Promise.withResolvers<UploadResponse>();
    this.response = promise;
    promise.catch(() => undefined);
    this.#free = Array.from({ length: PART_BUFFERS }, () =>
      Buffer.allocUnsafeSlow(BYTES_FIELD_HEADER_MAX + PART_BYTES),
    );
    this.#call = open((error, response) => {
      this.#settled = true;
      this.#wake();
      if (error === null && response !== undefined) resolve(response);
      else reject(error ?? new Error("the call ended without a response"));
    });
    this.#signal = signal;
    signal.addEventListener("abort", this.#cancel, { once: true });
    if (signal.aborted) this.#cancel();
  }

  /** Whether the response or an error has arrived. Nothing is sent after that. */
  get settled(): boolean {
    return this.#settled;
  }

  /** Sends a message without data, such as the start. */
  send(request: UploadRequest): void {
    if (!this.#settled)
      this.#call.write(Buffer.from(UploadRequest.encode(request).finish()), () => undefined);
  }

  /** Copies and sends data. Resolves when there is room for more. */
  async data(chunk: Uint8Array): Promise<void> {
    for (let at = 0; at < chunk.byteLength && !this.#settled; ) {
      const part = await this.#part();
      if (part === undefined) return;
      const copied = chunk.subarray(at, at + PART_BYTES - part.bytes);
      part.buffer.set(copied, BYTES_FIELD_HEADER_MAX + part.bytes);
      part.bytes += copied.byteLength;
      at += copied.byteLength;
      if (part.bytes === PART_BYTES) this.#flush();
    }
  }

  /** Sends the rest of the data, and the end. */
  end(request: UploadRequest): void {
    if (this.#settled) return;
    this.#flush();
    this.send(request);
    this.#call.end();
  }

  /** Ends the call unless it has ended. */
  close(): void {
    this.#signal.removeEventListener("abort", this.#cancel);
    if (!this.#settled) this.#call.cancel();
  }

  readonly #cancel = (): void => this.#call.cancel();

  /** Returns a part with room, or undefined if the call has ended. */
  async #part(): Promise<{ readonly buffer: Buffer; bytes: number } | undefined> {
    while (this.#filling === undefined) {
      if (this.#settled) return undefined;
      const buffer = this.#free.pop();
      if (buffer !== undefined) this.#filling = { buffer, bytes: 0 };
      else
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
    }
    return this.#filling;
  }

  #flush(): void {
    const part = this.#filling;
    if (part === undefined || part.bytes === 0) return;
    this.#filling = undefined;
    this.#call.write(writeBytesFieldHeader(part.buffer, DATA_FIELD, part.bytes), () => {
      this.#free.push(part.buffer);
      this.#wake();
    });
  }
}
