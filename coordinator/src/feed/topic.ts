/** The subject of a topic: it reads the state, and computes the messages that take a subscriber from one state to the next. */
export interface Subject<S> {
  /** Streams whose subjects have one key share everything. */
  readonly key: string;
  /** Returns the present state: `previous` itself if nothing published has changed. States are immutable. */
  look(previous: S | undefined): Evaluation<S>;
  /** Encoded messages; from nothing: the whole truth in one message. Throws what ends the stream. */
  messages(from: S | undefined, to: S): readonly Buffer[];
}

export interface Evaluation<S> {
  readonly state: S;
  /** Evaluate again when one of these changes. */
  readonly dependsOn: readonly string[];
}

/** Readers fall behind by a few states at most; those of others are encoded for each alone. */
const MAX_CACHED = 64;

/**
 * A subject with subscribers. It is evaluated once for each change, and each step between two states is encoded once for all
 * subscribers.
 */
export class Topic<S> {
  readonly #subject: Subject<S>;
  /** Keyed by a subscriber's last sent state. */
  readonly #messages = new Map<S | undefined, readonly Buffer[]>();
  readonly readers = new Set<() => void>();
  #look: Evaluation<S>;

  constructor(subject: Subject<S>) {
    this.#subject = subject;
    this.#look = subject.look(undefined);
  }

  get dependsOn(): readonly string[] {
    return this.#look.dependsOn;
  }

  /** Reports whether there is something new to tell. */
  refresh(): boolean {
    const before = this.#look.state;
    this.#look = this.#subject.look(before);
    if (this.#look.state === before) return false;
    this.#messages.clear();
    return true;
  }

  /** Returns the messages from a sent state, or from none, to the present one. */
  after(told: S | undefined): { readonly state: S; readonly messages: readonly Buffer[] } {
    const { state } = this.#look;
    if (state === told) return { state, messages: [] };
    const known = this.#messages.get(told);
    if (known !== undefined) return { state, messages: known };
    const messages = this.#subject.messages(told, state);
    if (this.#messages.size < MAX_CACHED) this.#messages.set(told, messages);
    return { state, messages };
  }
}
