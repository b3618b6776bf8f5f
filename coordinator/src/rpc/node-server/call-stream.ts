import { Duplex } from "node:stream";
import type { PeeredCall } from "@forage/identity/tls-server";
import { Metadata, type StatusObject, status } from "@grpc/grpc-js";

/** The part of a call that sends its answer and continues its request. */
export interface CallHost extends PeeredCall {
  readonly path: string;
  readonly deadlineMs: number;
  sendHead(metadata?: Metadata): void;
  sendMessage(message: unknown, onAccepted: (error?: Error) => void): void;
  sendStatus(end: StatusObject): void;
  /** Delivers the next messages of the request. */
  read(): void;
  /** Makes the windows for the request this large. */
  widenWindow(bytes: number): void;
}

const OK = { code: status.OK, details: "OK" };

/**
 * The object by which a handler of grpc-js serves a call of any of the four kinds. It behaves as the
 * library's own: an error that is emitted ends the call with its status, `cancelled` is emitted at
 * the end of the call, and `end` takes the trailers.
 */
export class CallStream extends Duplex {
  readonly metadata: Metadata;
  /** The request of a method without a stream of requests. */
  request: unknown;
  cancelled = false;
  readonly #host: CallHost;
  #status: Pick<StatusObject, "code" | "details"> & { metadata?: Metadata | undefined } = OK;
  #trailers: Metadata | undefined;

  constructor(host: CallHost, metadata: Metadata) {
    super({ objectMode: true });
    this.#host = host;
    this.metadata = metadata;
    this.on("error", (error) => {
      this.#status = statusOf(error);
      this.end();
    });
  }

  getPeer(): string {
    return this.#host.getPeer();
  }

  getAuthContext(): ReturnType<PeeredCall["getAuthContext"]> {
    return this.#host.getAuthContext();
  }

  getDeadline(): number {
    return this.#host.deadlineMs;
  }

  getPath(): string {
    return this.#host.path;
  }

  sendMetadata(metadata: Metadata): void {
    this.#host.sendHead(metadata);
  }

  /** Makes the windows for the request this large, so that large uploads wait less often. */
  widenWindow(bytes: number): void {
    this.#host.widenWindow(bytes);
  }

  override end(trailers?: unknown): this {
    if (trailers instanceof Metadata) this.#trailers = trailers;
    return super.end();
  }

  /** Ends the stream after the call is over. */
  cancel(): void {
    this.cancelled = true;
    this.emit("cancelled", "cancelled");
    this.destroy();
  }

  override _read(): void {
    this.#host.read();
  }

  override _write(message: unknown, _encoding: string, onAccepted: (error?: Error) => void): void {
    this.#host.sendMessage(message, onAccepted);
  }

  override _final(done: () => void): void {
    done();
    const { code, details, metadata } = this.#status;
    this.#host.sendStatus({ code, details, metadata: metadata ?? this.#trailers ?? new Metadata() });
  }
}

/** Returns the status of an error that a handler emits, as grpc-js does. */
function statusOf(error: Error & { code?: unknown; details?: unknown; metadata?: unknown }) {
  const metadata = error.metadata instanceof Metadata ? error.metadata : undefined;
  const message = typeof error.message === "string" ? error.message : "Unknown Error";
  if (!Number.isInteger(error.code)) return { code: status.UNKNOWN, details: message, metadata };
  const details = typeof error.details === "string" ? error.details : message;
  return { code: error.code as status, details, metadata };
}
