import { createHash } from "node:crypto";

export interface LastSentOptions<Message> {
  /** Returns the present message. Undefined: there is nothing to send. */
  readonly read: () => Message | undefined;
  /** Sent once after the last message, when there is nothing any more. */
  readonly nothing: Message;
  readonly encode: (message: Message) => Uint8Array;
}

/**
 * Tracks the newest message of one kind that a session has sent, and so whether a newer one is due. It keeps a digest, because
 * messages can hold logins. A receiver that never got a message gets no empty one.
 */
export class LastSent<Message> {
  readonly #options: LastSentOptions<Message>;
  #sent: string | undefined;

  constructor(options: LastSentOptions<Message>) {
    this.#options = options;
  }

  /** Returns the present message if it has changed since the last call. */
  due(): Message | undefined {
    const { read, nothing, encode } = this.#options;
    const present = read();
    const digest = present && createHash("sha256").update(encode(present)).digest("hex");
    if (digest === this.#sent) return undefined;
    this.#sent = digest;
    return present ?? nothing;
  }
}
