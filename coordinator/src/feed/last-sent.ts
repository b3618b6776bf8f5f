import { createHash } from "node:crypto";

export interface LastSentOptions<Message> {
  /** Returns the current message for a node. Undefined: there is nothing to send. */
  readonly read: (node: string) => Message | undefined;
  /** The message that is sent once when there is nothing to send any more. */
  readonly nothing: Message;
  readonly encode: (message: Message) => Uint8Array;
}

/**
 * Tracks which message of one kind a session has sent last, and whether a newer one has to be sent. It keeps a digest,
 * because messages can contain credentials. A receiver without any message gets no empty one.
 */
export class LastSent<Message> {
  readonly #options: LastSentOptions<Message>;
  readonly #node: string;
  #sent: string | undefined;

  /** Creates the tracker of a session with the node. All sessions should share the options. */
  constructor(node: string, options: LastSentOptions<Message>) {
    this.#node = node;
    this.#options = options;
  }

  /** Returns the current message if it has changed since the last call. */
  due(): Message | undefined {
    const { read, nothing, encode } = this.#options;
    const present = read(this.#node);
    const digest = present && createHash("sha256").update(encode(present)).digest("hex");
    if (digest === this.#sent) return undefined;
    this.#sent = digest;
    return present ?? nothing;
  }
}
