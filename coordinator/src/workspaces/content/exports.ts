import { CoordinatorError } from "../../errors.ts";
import { Channel } from "../../link/channel.ts";

/** Parts of an archive on their way; at 256 KiB or so each, a few MiB. */
const CAPACITY = 16;

/** Brings downloads of content that is on a node together with the node's uploads. Nothing of it is stored. */
export class Exports {
  readonly #waiting = new Map<string, Channel<Uint8Array>>();

  /** Waits for the upload of an object. */
  open(object: string): Channel<Uint8Array> {
    const channel = new Channel<Uint8Array>(CAPACITY);
    this.#waiting.set(object, channel);
    return channel;
  }

  close(object: string, channel: Channel<Uint8Array>): void {
    channel.close();
    if (this.#waiting.get(object) === channel) this.#waiting.delete(object);
  }

  /** Passes an upload on to the one who waits for it. Throws FAILED_PRECONDITION, ABORTED, and what the chunks throw. */
  async pass(object: string, chunks: AsyncIterable<Uint8Array>): Promise<void> {
    const channel = this.#waiting.get(object);
    if (channel === undefined)
      throw new CoordinatorError("FAILED_PRECONDITION", `the download of ${object} has ended`);
    // A reader gets one upload. The parts of another one would not fit to the first.
    this.#waiting.delete(object);
    try {
      for await (const chunk of chunks)
        if (!(await channel.push(chunk)))
          throw new CoordinatorError("ABORTED", `the download of ${object} was cancelled`);
      channel.close();
    } catch (error) {
      channel.close(error);
      throw error;
    }
  }
}
