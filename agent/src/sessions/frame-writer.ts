import type { ServeRequest, ServeResponse } from "@forage/proto/forage/agent/v1/agent";
import type { ClientDuplexStream } from "@grpc/grpc-js";

export type ServeStream = ClientDuplexStream<ServeRequest, ServeResponse>;
export type Frame = NonNullable<ServeRequest["frame"]>;

// Below gRPC's frame size, so that a session doesn't block others on the connection for long.
const CHUNK_MAX_BYTES = 32 * 1024;

/** Writes a session's frames as fast as the client reads them. */
export class FrameWriter {
  readonly #stream: ServeStream;
  readonly #signal: AbortSignal;

  constructor(stream: ServeStream, signal: AbortSignal) {
    this.#stream = stream;
    this.#signal = signal;
  }

  async data(name: "stdout" | "stderr", data: Uint8Array): Promise<void> {
    for (let at = 0; at < data.byteLength; at += CHUNK_MAX_BYTES) {
      await this.send({ $case: name, value: Buffer.from(data.subarray(at, at + CHUNK_MAX_BYTES)) });
    }
  }

  /** Writes a frame. Resolves when there is room for more, or when the client has disconnected. */
  async send(frame: Frame): Promise<void> {
    if (this.#signal.aborted || this.#stream.write({ frame })) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    const go = () => resolve();
    this.#stream.once("drain", go);
    this.#signal.addEventListener("abort", go, { once: true });
    await promise;
    // A session waits once for each frame that fills the stream's buffer.
    this.#stream.off("drain", go);
    this.#signal.removeEventListener("abort", go);
  }
}
