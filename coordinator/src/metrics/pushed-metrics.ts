import { CoordinatorError } from "../errors.ts";
import type { Clock } from "../time/clock.ts";

/**
 * The object of a pushed value: one pod, one container service, or, with neither, all workloads of
 * the namespace that scale by the name.
 */
export interface MetricName {
  readonly namespace: string;
  readonly name: string;
  readonly workload: string;
  readonly pod: string;
}

export interface PushedValue extends MetricName {
  readonly value: number;
  readonly ttlSeconds: number;
  /** The wall-clock time of the push. */
  readonly pushedAtMs: number;
  readonly expiresAtMs: number;
}

interface Entry extends PushedValue {
  /** The end of the value's validity, in monotonic time. */
  readonly endsMs: number;
}

/**
 * The most values of one namespace, so that pushers with a name per request or per user can't fill
 * the memory.
 */
const MAX_PER_NAMESPACE = 1_000;
/** The most values in total, about 5 MB. */
const MAX_IN_ALL = 20_000;

/**
 * Holds pushed values of custom metrics in memory. After a restart they are missing until they are
 * pushed again.
 */
export class PushedMetrics {
  readonly #clock: Clock;
  /** Values by namespace, then by the rest of the name. */
  readonly #values = new Map<string, Map<string, Entry>>();
  #count = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * Stores a value, and replaces one of the same name. Throws RESOURCE_EXHAUSTED if there are too
   * many.
   */
  put(name: MetricName, value: number, ttlSeconds: number): PushedValue {
    const { namespace } = name;
    const own = this.#values.get(namespace) ?? new Map<string, Entry>();
    const key = keyOf(name);
    if (!own.has(key)) {
      this.#makeRoom(namespace, own);
      this.#count++;
    }
    const nowMs = this.#clock.nowMs();
    const lifeMs = ttlSeconds * 1000;
    const entry: Entry = {
      ...name,
      value,
      ttlSeconds,
      pushedAtMs: nowMs,
      expiresAtMs: nowMs + lifeMs,
      endsMs: this.#clock.monotonicMs() + lifeMs,
    };
    own.set(key, entry);
    this.#values.set(namespace, own);
    return entry;
  }

  /** Returns a value; undefined if there is none or it has expired. */
  get(name: MetricName): PushedValue | undefined {
    const entry = this.#values.get(name.namespace)?.get(keyOf(name));
    return entry !== undefined && entry.endsMs > this.#clock.monotonicMs() ? entry : undefined;
  }

  /** Returns the values that have not expired, with their names. */
  list(namespace?: string): readonly PushedValue[] {
    const all = namespace === undefined ? [...this.#values.values()] : [this.#values.get(namespace)];
    const nowMs = this.#clock.monotonicMs();
    const live = all.flatMap((values) => [...(values?.values() ?? [])]).filter((it) => it.endsMs > nowMs);
    return live.sort((a, b) => (fullKeyOf(a) < fullKeyOf(b) ? -1 : 1));
  }

  /** Deletes a value. Reports whether there was one. */
  delete(name: MetricName): boolean {
    const own = this.#values.get(name.namespace);
    const wasLive = this.get(name) !== undefined;
    if (own?.delete(keyOf(name))) this.#count--;
    if (own?.size === 0) this.#values.delete(name.namespace);
    return wasLive;
  }

  /** Removes expired values when space is needed, so that no timer is necessary. */
  #makeRoom(namespace: string, own: Map<string, Entry>): void {
    if (own.size >= MAX_PER_NAMESPACE) this.#dropExpired(own);
    if (own.size >= MAX_PER_NAMESPACE) throw full(`namespace "${namespace}"`, MAX_PER_NAMESPACE);
    if (this.#count < MAX_IN_ALL) return;
    for (const [other, values] of this.#values) {
      this.#dropExpired(values);
      if (values.size === 0) this.#values.delete(other);
    }
    if (this.#count >= MAX_IN_ALL) throw full("the cluster", MAX_IN_ALL);
  }

  #dropExpired(values: Map<string, Entry>): void {
    const nowMs = this.#clock.monotonicMs();
    for (const [key, { endsMs }] of values) {
      if (endsMs > nowMs || !values.delete(key)) continue;
      this.#count--;
    }
  }
}

function full(where: string, limit: number): CoordinatorError {
  const how = "wait until some have expired, or delete them";
  return new CoordinatorError(
    "RESOURCE_EXHAUSTED",
    `${where} has ${limit} pushed values, which is the limit: ${how}`,
  );
}

function keyOf({ name, workload, pod }: MetricName): string {
  return `${name}/${workload}/${pod}`;
}

function fullKeyOf(value: MetricName): string {
  return `${value.namespace}/${keyOf(value)}`;
}
