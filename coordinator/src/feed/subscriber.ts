import type { Sink } from "../rpc/push.ts";
import type { Subject } from "./topic.ts";
import type { Reading, TopicRegistry } from "./topic-registry.ts";

export interface SubscriberOptions<S> {
  /** Asked again whenever there may be news: it can change with where the client is. */
  readonly subject: () => Subject<S>;
  /** Sent in place of a state that this reader may not see. */
  readonly instead?: (state: S) => readonly Buffer[] | undefined;
  /** A further topic that wakes the reader, beside those that the subject depends on. */
  readonly alsoOn?: string;
}

/**
 * One stream: the complete state at once, and then the change to each newer state. It holds its last sent state, which all
 * streams at that state share. It evaluates news only after its last message has left, so a stalled client gets one step to the
 * newest state. There are thousands of these that all move at once, so it allocates no promises and no garbage.
 */
export class Subscriber<S> {
  readonly #board: TopicRegistry;
  readonly #options: SubscriberOptions<S>;
  readonly #sink: Sink<Buffer>;
  readonly #stopWatching: (() => void) | undefined;
  readonly #wake = (): void => this.#advance();
  readonly #taken = (): void => {
    this.#sending = false;
    this.#advance();
  };
  #subject: Subject<S>;
  #reading: Reading<S>;
  #told: S | undefined;
  #left: readonly Buffer[] = [];
  #sending = false;
  #closed = false;

  /** Throws RESOURCE_EXHAUSTED when there are too many. */
  constructor(board: TopicRegistry, options: SubscriberOptions<S>, sink: Sink<Buffer>) {
    this.#board = board;
    this.#options = options;
    this.#sink = sink;
    this.#subject = options.subject();
    this.#reading = board.read(this.#subject, this.#wake);
    this.#stopWatching = options.alsoOn === undefined ? undefined : board.watch(options.alsoOn, this.#wake);
    this.#advance();
  }

  close(): void {
    this.#closed = true;
    this.#reading.close();
    this.#stopWatching?.();
  }

  #advance(): void {
    if (this.#sending || this.#closed) return;
    try {
      if (this.#left.length === 0) this.#look();
    } catch (error) {
      this.#sink.fail(error);
      return;
    }
    const [message] = this.#left;
    if (message === undefined) return;
    this.#left = this.#left.slice(1);
    this.#sending = true;
    this.#sink.send(message, this.#taken);
  }

  #look(): void {
    const subject = this.#options.subject();
    if (subject.key !== this.#subject.key) {
      this.#reading.close();
      this.#subject = subject;
      this.#reading = this.#board.read(subject, this.#wake);
    }
    const { state, messages } = this.#reading.topic.after(this.#told);
    this.#told = state;
    this.#left = messages.length === 0 ? messages : (this.#options.instead?.(state) ?? messages);
  }
}
