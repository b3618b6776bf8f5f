/** The messages that bring a subscriber to this version. */
export interface Step {
  readonly version: number;
  /** The encoded messages. Subscribers at the same version share them. */
  readonly messages: readonly Buffer[];
}

/** One message of a step. */
export interface Delta<V> {
  /** Whether the update is a snapshot: a key that none of its parts contains no longer exists. */
  readonly full: boolean;
  readonly upserts: readonly V[];
  /** The removed keys. Only in the last part. */
  readonly removals: readonly string[];
  /** Whether another part of the same update follows. */
  readonly more: boolean;
  readonly version: number;
}

export interface DeltaLogOptions<V> {
  readonly encode: (value: V) => Uint8Array;
  readonly message: (delta: Delta<V>) => Buffer;
  /** The size in bytes at which a message is sent and the next part begins. Default: 512 KiB. */
  readonly partBytes?: number | undefined;
  /** The version of the empty log. Default: 0. */
  readonly firstVersion?: number;
}

interface Known<V> {
  readonly value: V;
  readonly bytes: Uint8Array;
  /** The version of the last change. */
  readonly version: number;
}

/** The default size of a part, well below the limit of messages that agents accept. */
const DEFAULT_PART_BYTES = 512 * 1024;
/** The limit of remembered changes. A subscriber that is further behind gets a snapshot. */
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
  /** The version up to which changes are not, or not completely, remembered. */
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
    // A version that is only partly remembered can't be the base of a delta.
    if (surplus > 0) this.#forgotten = this.#changes.splice(0, surplus).at(-1)?.version ?? this.#version;
    return true;
  }

  /** Returns the changes since the given version, which the subscriber has. Without a version, returns a snapshot. */
  after(sent: number | undefined): Step {
    const version = this.#version;
    if (sent === version) return { version, messages: [] };
    const known = this.#steps.get(sent);
    if (known !== undefined) return { version, messages: known };
    const messages = this.#messages(sent);
    if (this.#steps.size < MAX_CACHED) this.#steps.set(sent, messages);
    return { version, messages };
  }

  #messages(sent: number | undefined): readonly Buffer[] {
    const full = sent === undefined || sent < this.#forgotten;
    const keys = full
      ? [...this.#known.keys()]
      : [...new Set(this.#changes.filter(({ version }) => version > sent).map(({ key }) => key))];
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
