/** A subscriber's next step: the messages that bring it up to this version. */
export interface Step {
  readonly version: number;
  /** Encoded ConnectResponses; those who are as far share the bytes. */
  readonly messages: readonly Buffer[];
}

/** One message of a step. */
export interface Delta<V> {
  /** Whether the update is a complete state: anything that none of its parts names no longer exists. */
  readonly full: boolean;
  readonly upserts: readonly V[];
  /** Keys; in the last part only. */
  readonly removals: readonly string[];
  /** Whether another part follows that belongs to the same update. */
  readonly more: boolean;
  readonly version: number;
}

export interface DeltaLogOptions<V> {
  readonly encode: (value: V) => Uint8Array;
  readonly message: (delta: Delta<V>) => Buffer;
  /** A message that has so much in it is sent, and another follows. */
  readonly partBytes?: number | undefined;
  /** Before anything is in it. */
  readonly firstVersion?: number;
}

interface Known<V> {
  readonly value: V;
  readonly bytes: Uint8Array;
  /** The version of the last change. */
  readonly version: number;
}

/** Well below what agents take in one message. */
const DEFAULT_PART_BYTES = 512 * 1024;
/** A subscriber that is further behind gets a snapshot. */
const MAX_REMEMBERED = 4_096;
const MAX_CACHED = 16;

/** Publishes a set of values to many subscribers. Each snapshot and each delta is encoded once for all of them. */
export class DeltaLog<V> {
  readonly #options: DeltaLogOptions<V>;
  readonly #known = new Map<string, Known<V>>();
  /** The changed keys with their versions, oldest first. */
  readonly #changes: { readonly version: number; readonly key: string }[] = [];
  readonly #steps = new Map<number | undefined, readonly Buffer[]>();
  #version: number;
  /** Changes up to this version are not remembered, or not all of them. */
  #forgotten = -1;
  #pending = false;

  constructor(options: DeltaLogOptions<V>) {
    this.#options = options;
    this.#version = options.firstVersion ?? 0;
  }

  get version(): number {
    return this.#version;
  }

  get(key: string): V | undefined {
    return this.#known.get(key)?.value;
  }

  keys(): IterableIterator<string> {
    return this.#known.keys();
  }

  /** Returns the version of the key's last change; undefined: it does not exist. */
  versionOf(key: string): number | undefined {
    return this.#known.get(key)?.version;
  }

  /** Sets the value of a key, or removes the key if the value is undefined. The change becomes visible with the next commit. */
  set(key: string, value: V | undefined): void {
    const before = this.#known.get(key);
    const bytes = value === undefined ? undefined : this.#options.encode(value);
    if (value === undefined || bytes === undefined) {
      if (before === undefined) return;
      this.#known.delete(key);
    } else {
      if (before !== undefined && Buffer.compare(before.bytes, bytes) === 0) return;
      this.#known.set(key, { value, bytes, version: this.#version + 1 });
    }
    this.#changes.push({ version: this.#version + 1, key });
    this.#pending = true;
  }

  /** Commits the changes. Returns whether there were any. */
  commit(): boolean {
    if (!this.#pending) return false;
    this.#pending = false;
    this.#version++;
    this.#steps.clear();
    const surplus = this.#changes.length - MAX_REMEMBERED;
    // A version that is remembered only in part can't be a delta any more.
    if (surplus > 0) this.#forgotten = this.#changes.splice(0, surplus).at(-1)?.version ?? this.#version;
    return true;
  }

  /** Returns the changes since the version that a subscriber has. Without a version, returns a snapshot. */
  after(told: number | undefined): Step {
    const version = this.#version;
    if (told === version) return { version, messages: [] };
    const known = this.#steps.get(told);
    if (known !== undefined) return { version, messages: known };
    const messages = this.#messages(told);
    if (this.#steps.size < MAX_CACHED) this.#steps.set(told, messages);
    return { version, messages };
  }

  #messages(told: number | undefined): readonly Buffer[] {
    const full = told === undefined || told < this.#forgotten;
    const keys = full
      ? [...this.#known.keys()]
      : [...new Set(this.#changes.filter(({ version }) => version > told).map(({ key }) => key))];
    const upserts = keys.flatMap((key) => this.#known.get(key) ?? []);
    const removals = keys.filter((key) => !this.#known.has(key));
    const version = this.#version;
    return [...this.#parts(upserts)].map(({ part, more }) =>
      this.#options.message({ full, upserts: part, removals: more ? [] : removals, more, version }),
    );
  }

  *#parts(known: readonly Known<V>[]): Generator<{ readonly part: readonly V[]; readonly more: boolean }> {
    const { partBytes = DEFAULT_PART_BYTES } = this.#options;
    let part: V[] = [];
    let bytes = 0;
    for (const { value, bytes: encoded } of known) {
      if (part.length > 0 && bytes + encoded.length > partBytes) {
        yield { part, more: true };
        part = [];
        bytes = 0;
      }
      part.push(value);
      bytes += encoded.length;
    }
    yield { part, more: false };
  }
}
