import type { Sink } from "../rpc/push.ts";
import type { Subject } from "./topic.ts";
import type { TopicHandle, TopicRegistry } from "./topic-registry.ts";

export interface SubscriberOptions<S> {
  /**
   * Returns the subject of the stream. Called at each evaluation, because the subject can change with the client's node.
   */
  readonly subject: () => Subject<S>;
  /** Returns messages to send instead of a state that this client may not see. */
  readonly instead?: (state: S) => readonly Buffer[] | undefined;
  /** A key whose changes also wake the subscriber, in addition to the dependencies of the subject. */
  readonly alsoOn?: string;
}

/**
 * One stream. It sends the complete state first, and then each change to a newer state. It refers to its last sent state,
 * which all streams with that state share. It evaluates the next state only after its last message was sent, so a stalled
 * client gets one step to the newest state. Thousands of subscribers advance at the same time, so it allocates no promises.
 */
export class Subscriber<S> {
  readonly #registry: TopicRegistry;
  readonly #options: SubscriberOptions<S>;
  readonly #sink: Sink<Buffer>;
  readonly #stopWatching: (() => void) | undefined;
  readonly #wake = (): void => this.#advance();
  readonly #onAccepted = (): void => {
    this.#sending = false;
    this.#advance();
  };
  #subject: Subject<S>;
  #reading: TopicHandle<S>;
  #lastSent: S | undefined;
  #left: readonly Buffer[] = [];
  #sending = false;
  #closed = false;

  /** @throws CoordinatorError RESOURCE_EXHAUSTED if there are too many streams. */
  constructor(registry: TopicRegistry, options: SubscriberOptions<S>, sink: Sink<Buffer>) {
    this.#registry = registry;
    this.#options = options;
    this.#sink = sink;
    this.#subject = options.subject();
    this.#reading = registry.read(this.#subject, this.#wake);
    this.#stopWatching =
      options.alsoOn === undefined ? undefined : registry.watch(options.alsoOn, this.#wake);
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
      if (this.#left.length === 0) this.#evaluate();
    } catch (error) {
      this.#sink.fail(error);
      return;
    }
    const [message] = this.#left;
    if (message === undefined) return;
    this.#left = this.#left.slice(1);
    this.#sending = true;
    this.#sink.send(message, this.#onAccepted);
  }

  #evaluate(): void {
    const subject = this.#options.subject();
    if (subject.key !== this.#subject.key) {
      this.#reading.close();
      this.#subject = subject;
      this.#reading = this.#registry.read(subject, this.#wake);
    }
    const { state, messages } = this.#reading.topic.after(this.#lastSent);
    this.#lastSent = state;
    this.#left = messages.length === 0 ? messages : (this.#options.instead?.(state) ?? messages);
  }
}
