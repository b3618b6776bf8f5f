import { CoordinatorError } from "../../errors.ts";
import { Channel } from "../../link/channel.ts";

/** The number of chunks buffered for one download, each of about 256 KiB. */
const CAPACITY = 16;

/** Connects downloads of content that is on a node with the node's uploads. Nothing is stored. */
export class Exports {
  readonly #waiting = new Map<string, Channel<Uint8Array>>();

  /** Opens a channel that receives the upload of an object. */
  open(object: string): Channel<Uint8Array> {
    const channel = new Channel<Uint8Array>(CAPACITY);
    this.#waiting.set(object, channel);
    return channel;
  }

  close(object: string, channel: Channel<Uint8Array>): void {
    channel.close();
    if (this.#waiting.get(object) === channel) this.#waiting.delete(object);
  }

  /**
   * Passes an upload on to the download that waits for it. Throws FAILED_PRECONDITION, ABORTED, and
   * any error of the chunks.
   */
  async pass(object: string, chunks: AsyncIterable<Uint8Array>): Promise<void> {
    const channel = this.#waiting.get(object);
    if (channel === undefined)
      throw new CoordinatorError("FAILED_PRECONDITION", `the download of ${object} has ended`);
    // A download accepts one upload: the chunks of a second one would not continue the first.
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
