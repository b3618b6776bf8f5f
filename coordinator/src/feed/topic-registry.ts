import { CoordinatorError } from "../errors.ts";
import { type Subject, Topic } from "./topic.ts";

export interface TopicRegistryOptions {
  /** Runs a function in a later turn of the event loop, after pending I/O, such as `setImmediate`. */
  readonly defer: (run: () => void) => void;
  /** Runs a function after the current task, before other events. Default: `queueMicrotask`. */
  readonly soon?: (run: () => void) => void;
  /**
   * The limit of streams. Further ones are rejected and retry later. Each uses memory as long as its client keeps it open.
   */
  readonly maxReaders?: number;
}

export interface TopicHandle<S> {
  readonly topic: Topic<S>;
  close(): void;
}

const DEFAULT_MAX_READERS = 50_000;
/**
 * The number of subscribers that are woken at once. Messages of the first ones are sent before the last ones are evaluated.
 */
const WAKE_AT_ONCE = 64;

/**
 * The number of groups that are woken in one turn of the event loop. Thousands of streams would block other work for
 * longer.
 */
const GROUPS_IN_TURN = 16;

/** The number of topics that are evaluated at once, so that a change that affects thousands doesn't block other work. */
const EVALUATE_AT_ONCE = 128;

/**
 * Holds all topics with subscribers. A change is evaluated once for each affected topic, independent of the number of
 * streams.
 */
export class TopicRegistry {
  readonly #options: Required<TopicRegistryOptions>;
  readonly #topics = new Map<string, Topic<unknown>>();
  /** The dependents of a key: topics, and subscribers that depend on it directly. */
  readonly #dependents = new Map<string, Set<Topic<unknown> | (() => void)>>();
  readonly #dirty = new Set<Topic<unknown>>();
  readonly #toWake = new Set<() => void>();
  #waking: SetIterator<() => void> | undefined;
  #readers = 0;
  #scheduled = false;
  #groupsInTurn = 0;

  constructor(options: TopicRegistryOptions) {
    this.#options = { maxReaders: DEFAULT_MAX_READERS, soon: queueMicrotask, ...options };
  }

  get size(): { readonly topics: number; readonly readers: number; readonly keys: number } {
    return { topics: this.#topics.size, readers: this.#readers, keys: this.#dependents.size };
  }

  /**
   * Subscribes to the topic of the subject. `wake` is called, never synchronously, when the state may have changed. @throws
   * CoordinatorError RESOURCE_EXHAUSTED if there are too many streams.
   */
  read<S>(subject: Subject<S>, wake: () => void): TopicHandle<S> {
    if (this.#readers >= this.#options.maxReaders) {
      throw new CoordinatorError("RESOURCE_EXHAUSTED", `more than ${this.#readers} streams; try again later`);
    }
    const topic = (this.#topics.get(subject.key) as Topic<S> | undefined) ?? this.#open(subject);
    topic.readers.add(wake);
    this.#readers++;
    return { topic, close: () => this.#close(subject.key, topic, wake) };
  }

  /** Wakes the subscriber also when this key changes. Returns a function that stops it. */
  watch(key: string, wake: () => void): () => void {
    this.#depend(wake, [key]);
    return () => this.#undepend(wake, [key]);
  }

  /** Whether anything depends on a key. Otherwise the keys of changes need not be derived. */
  get hasDependents(): boolean {
    return this.#dependents.size > 0;
  }

  /** Schedules the evaluation of everything that depends on one of the keys. */
  changed(keys: Iterable<string>): void {
    for (const key of keys) {
      for (const dependent of this.#dependents.get(key) ?? []) {
        if (dependent instanceof Topic) this.#dirty.add(dependent);
        else this.#toWake.add(dependent);
      }
    }
    if (this.#dirty.size > 0 || this.#toWake.size > 0) this.#schedule();
  }

  #open<S>(subject: Subject<S>): Topic<S> {
    const topic = new Topic(subject);
    this.#topics.set(subject.key, topic as Topic<unknown>);
    this.#depend(topic as Topic<unknown>, topic.dependsOn);
    return topic;
  }

  #close<S>(key: string, topic: Topic<S>, wake: () => void): void {
    if (!topic.readers.delete(wake)) return;
    this.#readers--;
    this.#toWake.delete(wake);
    if (topic.readers.size > 0) return;
    this.#topics.delete(key);
    this.#dirty.delete(topic as Topic<unknown>);
    this.#undepend(topic as Topic<unknown>, topic.dependsOn);
  }

  /**
   * Schedules the next run. Subscribers are woken before most other reactions to a change: reconcilers start in the same
   * turn of the event loop and can take milliseconds.
   */
  #schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    const { soon, defer } = this.#options;
    const mayGoOn = this.#groupsInTurn < GROUPS_IN_TURN;
    if (!mayGoOn) this.#groupsInTurn = 0;
    (mayGoOn ? soon : defer)(() => this.#run());
  }

  #run(): void {
    this.#scheduled = false;
    this.#groupsInTurn++;
    let looks = EVALUATE_AT_ONCE;
    for (const topic of this.#dirty) {
      if (looks-- === 0) break;
      this.#dirty.delete(topic);
      const before = topic.dependsOn;
      const isNew = topic.refresh();
      if (!sameKeys(before, topic.dependsOn)) {
        this.#undepend(topic, before);
        this.#depend(topic, topic.dependsOn);
      }
      if (isNew) for (const wake of topic.readers) this.#toWake.add(wake);
    }
    this.#wakeSome();
    if (this.#dirty.size > 0) this.#groupsInTurn = GROUPS_IN_TURN;
    if (this.#dirty.size > 0 || this.#toWake.size > 0) this.#schedule();
    else this.#groupsInTurn = 0;
  }

  /** Uses one iterator for the whole set, because a new one would first skip all deleted entries. */
  #wakeSome(): void {
    this.#waking ??= this.#toWake.values();
    for (let left = WAKE_AT_ONCE; left > 0; left--) {
      const { done, value: wake } = this.#waking.next();
      if (done === true || wake === undefined) {
        this.#waking = undefined;
        return;
      }
      this.#toWake.delete(wake);
      wake();
    }
  }

  #depend(dependent: Topic<unknown> | (() => void), keys: readonly string[]): void {
    for (const key of keys) {
      const dependents = this.#dependents.get(key);
      if (dependents === undefined) this.#dependents.set(key, new Set([dependent]));
      else dependents.add(dependent);
    }
  }

  #undepend(dependent: Topic<unknown> | (() => void), keys: readonly string[]): void {
    for (const key of keys) {
      const dependents = this.#dependents.get(key);
      dependents?.delete(dependent);
      if (dependents?.size === 0) this.#dependents.delete(key);
    }
  }
}

function sameKeys(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((key, index) => key === b[index]);
}
