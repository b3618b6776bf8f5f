import { Connection, type ConnectionOptions } from "../connection.ts";
import type { ConnectionError } from "../connection-error.ts";
import { FrameReader } from "../frame-reader.ts";
import { encodeFrame, encodeHeaders, encodeSettings, FRAME, type Frame, PREFACE } from "../frames.ts";
import { encodeFields } from "../hpack/encode-fields.ts";
import type { ServerStream } from "../server-stream.ts";

export const REQUEST: Buffer = encodeFields([
  [":method", "POST"],
  [":scheme", "http"],
  [":path", "/service/method"],
]);

/** A connection without a socket, with the client's side for tests. */
export class Peer {
  nowMs = 0;
  readonly connection: Connection;
  readonly streams: ServerStream[] = [];
  readonly closed: number[] = [];
  readonly bodies = new Map<number, string>();
  readonly frames: Frame[] = [];
  failure: ConnectionError | undefined;
  readonly #reader = new FrameReader();

  constructor(options: Partial<ConnectionOptions> = {}) {
    this.#reader.read(PREFACE, () => {});
    this.connection = new Connection({
      monotonicMs: () => this.nowMs,
      maxStreams: 100,
      onOutput: () => {},
      onFailure: (error) => {
        this.failure = error;
      },
      onRequest: (stream) => this.#take(stream),
      ...options,
    });
  }

  /** Sends the preface and settings. */
  begin(settings: readonly (readonly [id: number, value: number])[] = []): this {
    return this.send(PREFACE, encodeSettings(settings));
  }

  /** Passes frames to the connection, and collects its answers. */
  send(...frames: readonly Buffer[]): this {
    this.connection.receive(Buffer.concat(frames));
    return this.drain();
  }

  open(id: number, endsStream = true): this {
    return this.send(encodeHeaders(id, REQUEST, endsStream));
  }

  /** Collects everything that the connection has to send. */
  drain(): this {
    while (this.connection.hasOutput) {
      const { bytes, callbacks } = this.connection.takeOutput();
      this.#reader.read(bytes, (frame) =>
        this.frames.push({ ...frame, payload: Buffer.from(frame.payload) }),
      );
      for (const callBack of callbacks) callBack();
      this.connection.resume();
    }
    return this;
  }

  ofType(type: number): readonly Frame[] {
    return this.frames.filter((frame) => frame.type === type);
  }

  /** Returns the bodies that a stream has received. */
  dataOf(streamId: number): string {
    const parts = this.ofType(FRAME.DATA).filter((frame) => frame.streamId === streamId);
    return Buffer.concat(parts.map(({ payload }) => payload)).toString();
  }

  #take(stream: ServerStream): void {
    this.streams.push(stream);
    this.bodies.set(stream.id, "");
    stream.user = {
      data: (part) => this.bodies.set(stream.id, this.bodies.get(stream.id) + part.toString()),
      end: () => {},
      close: () => this.closed.push(stream.id),
    };
  }
}

export function windowUpdate(streamId: number, increment: number): Buffer {
  const payload = Buffer.alloc(4);
  payload.writeUInt32BE(increment);
  return encodeFrame(FRAME.WINDOW_UPDATE, 0, streamId, payload);
}
