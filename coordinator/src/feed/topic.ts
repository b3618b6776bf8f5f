/**
 * The subject of a topic. It reads the state, and encodes the messages that bring a subscriber from one state to the next.
 */
export interface Subject<S> {
  /** The key of the topic. Streams whose subjects have the same key share the topic. */
  readonly key: string;
  /** Returns the current state, which is `previous` itself if nothing published has changed. States are immutable. */
  evaluate(previous: S | undefined): Evaluation<S>;
  /**
   * Returns the encoded messages from one state to another. Without a first state, returns the complete state. An error
   * ends the stream.
   */
  messages(from: S | undefined, to: S): readonly Buffer[];
}

export interface Evaluation<S> {
  readonly state: S;
  /** The keys whose changes require another evaluation. */
  readonly dependsOn: readonly string[];
}

/** The limit of cached steps. Most subscribers are behind by a few states only; steps of others are encoded each time. */
const MAX_CACHED = 64;

/**
 * A subject with subscribers. It is evaluated once for each change, and each step between two states is encoded once for
 * all subscribers.
 */
export class Topic<S> {
  readonly #subject: Subject<S>;
  /** The encoded messages by a subscriber's last sent state. */
  readonly #messages = new Map<S | undefined, readonly Buffer[]>();
  readonly readers = new Set<() => void>();
  #evaluation: Evaluation<S>;

  constructor(subject: Subject<S>) {
    this.#subject = subject;
    this.#evaluation = subject.evaluate(undefined);
  }

  get dependsOn(): readonly string[] {
    return this.#evaluation.dependsOn;
  }

  /** Evaluates the subject. Returns whether its state has changed. */
  refresh(): boolean {
    const before = this.#evaluation.state;
    this.#evaluation = this.#subject.evaluate(before);
    if (this.#evaluation.state === before) return false;
    this.#messages.clear();
    return true;
  }

  /** Returns the current state and the messages that lead to it from a sent state. Undefined: none was sent. */
  after(sent: S | undefined): { readonly state: S; readonly messages: readonly Buffer[] } {
    const { state } = this.#evaluation;
    if (state === sent) return { state, messages: [] };
    const known = this.#messages.get(sent);
    if (known !== undefined) return { state, messages: known };
    const messages = this.#subject.messages(sent, state);
    if (this.#messages.size < MAX_CACHED) this.#messages.set(sent, messages);
    return { state, messages };
  }
}
