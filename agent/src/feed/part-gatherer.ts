import { LinkError } from "../link/link-error.ts";

export interface PartGathererOptions<Message> {
  /** The name of the messages in errors, such as "an assignment". */
  readonly noun: string;
  /** Reports whether another part of the same message follows. */
  readonly hasMore: (part: Message) => boolean;
  /**
   * Merges both into one message; fields about the whole come from the later part. Undefined: they don't belong
   * together.
   */
  readonly join: (begun: Message, part: Message) => Message | undefined;
}

// At 512 KiB or more per part, this is far more than any host's share of a cluster.
const PARTS_MAX = 1_000;

/** Joins the parts of messages that are too large for one. No part has an effect before the last one has arrived. */
export class PartGatherer<Message> {
  readonly #options: PartGathererOptions<Message>;
  #begun: Message | undefined;
  #partCount = 0;

  constructor(options: PartGathererOptions<Message>) {
    this.#options = options;
  }

  /** Drops the parts of an earlier connection. A new connection begins with a whole message. */
  restart(): void {
    this.#begun = undefined;
    this.#partCount = 0;
  }

  /**
   * Returns the whole message after its last part, and undefined before.
   * @throws LinkError PROTOCOL if the parts don't belong together, or are too many.
   */
  add(part: Message): Message | undefined {
    const { noun, hasMore, join } = this.#options;
    this.#partCount += 1;
    if (this.#partCount > PARTS_MAX)
      throw new LinkError("PROTOCOL", `${noun} of more than ${PARTS_MAX} parts`);
    const whole = this.#begun === undefined ? part : join(this.#begun, part);
    if (whole === undefined)
      throw new LinkError("PROTOCOL", `${noun} came in parts, and something else between them`);
    if (hasMore(part)) {
      this.#begun = whole;
      return undefined;
    }
    this.restart();
    return whole;
  }
}
