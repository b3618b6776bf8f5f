import { ConnectionError } from "./connection-error.ts";
import { CODE } from "./frames.ts";
import type { ServerStream } from "./server-stream.ts";

/**
 * The most remembered streams that this side reset, because frames for them may still be in
 * transit. Older ones are treated as if the peer had ended them.
 */
const MAX_REMEMBERED = 256;

/** The streams of one connection by their ids, which always increase. */
export class StreamTable {
  readonly #open = new Map<number, ServerStream>();
  /** Streams that this side reset, oldest first. Undefined: none, as on most connections. */
  #reset: Set<number> | undefined;
  /** The newest streams that the peer ended, oldest first. */
  #ended: Set<number> | undefined;
  /** The highest id that the peer has used. */
  lastId = 0;

  get size(): number {
    return this.#open.size;
  }

  all(): IterableIterator<ServerStream> {
    return this.#open.values();
  }

  get(id: number): ServerStream | undefined {
    return this.#open.get(id);
  }

  add(stream: ServerStream): void {
    this.#open.set(stream.id, stream);
  }

  remove({ id }: ServerStream): void {
    this.#open.delete(id);
    this.#ended = withId(id, this.#ended);
  }

  /** Records that frames of the stream may still arrive, which are ignored. */
  noteReset(id: number): void {
    this.#reset = withId(id, this.#reset);
  }

  wasReset(id: number): boolean {
    return this.#reset?.has(id) === true;
  }

  /**
   * Returns the stream of a frame that does not open one; undefined if the stream has ended. Throws
   * ConnectionError.
   */
  existing(id: number): ServerStream | undefined {
    const stream = this.#open.get(id);
    if (stream === undefined && (id === 0 || id > this.lastId))
      throw new ConnectionError(CODE.PROTOCOL_ERROR, `a frame names stream ${id}, which is not open`);
    return stream;
  }

  /** Returns the stream of a second header block. Throws ConnectionError. */
  forTrailers(id: number): ServerStream {
    const stream = this.#open.get(id);
    if (stream !== undefined) return stream;
    throw new ConnectionError(
      this.#ended?.has(id) ? CODE.STREAM_CLOSED : CODE.PROTOCOL_ERROR,
      `a header block names stream ${id}, which is not open`,
    );
  }
}

/** Adds an id, and removes the oldest one if there are too many. */
function withId(id: number, ids = new Set<number>()): Set<number> {
  ids.add(id);
  if (ids.size <= MAX_REMEMBERED) return ids;
  for (const oldest of ids) {
    ids.delete(oldest);
    break;
  }
  return ids;
}
