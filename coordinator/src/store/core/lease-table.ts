import { EarliestTimer } from "@forage/common/earliest-timer";
import type { Clock } from "../clock.ts";
import { LEASE_KEYS_MAX } from "../limits.ts";
import type { LeaseId, Op } from "../store.ts";
import { StoreError } from "../store-error.ts";
import type { Commit, Version } from "./timeline.ts";

interface LeaseState {
  readonly ttlMs: number;
  readonly keys: Set<string>;
  deadlineMs: number;
}

/** Holds the live leases with their keys and deadlines. Calls `expire` for each lease that was not kept alive in time. */
export class LeaseTable {
  readonly #clock: Clock;
  readonly #idPrefix: string;
  readonly #expire: (id: LeaseId) => void;
  readonly #leases = new Map<LeaseId, LeaseState>();
  #granted = 0;
  /** Keeping a lease alive doesn't restart the timer: it then finds no expired lease, and is started again. */
  readonly #timer: EarliestTimer;

  /** The id prefix must differ each time a store is opened, so that the id of an old lease never names a new one. */
  constructor(clock: Clock, idPrefix: string, expire: (id: LeaseId) => void) {
    this.#clock = clock;
    this.#timer = new EarliestTimer(clock, () => this.#sweep());
    this.#idPrefix = idPrefix;
    this.#expire = expire;
  }

  grant(ttlMs: number): LeaseId {
    const id = formatLeaseId(`${this.#idPrefix}${++this.#granted}`, ttlMs);
    this.#start(id, ttlMs);
    return id;
  }

  /** Restores the lease of a record that was read at the opening of the store, with its full time to live. */
  recover(version: Version): void {
    const id = version.lease;
    if (id === undefined || version.value === undefined) return;
    const state = this.#leases.get(id) ?? this.#start(id, leaseTtlMs(id));
    state.keys.add(version.key);
  }

  /** Returns the lease's time to live in milliseconds. Throws LEASE_NOT_FOUND if the lease doesn't exist or has expired. */
  ttlMs(id: LeaseId): number {
    return this.#live(id).ttlMs;
  }

  keepAlive(id: LeaseId): void {
    const lease = this.#live(id);
    lease.deadlineMs = this.#clock.monotonicMs() + lease.ttlMs;
  }

  /** Throws if a lease of the operations doesn't exist or has too many keys. */
  check(ops: readonly Op[]): void {
    const added = new Map<LeaseId, number>();
    for (const op of ops) {
      if (op.type !== "put" || op.lease === undefined) continue;
      const { keys } = this.#live(op.lease);
      const count = (added.get(op.lease) ?? keys.size) + (keys.has(op.key) ? 0 : 1);
      if (count > LEASE_KEYS_MAX)
        throw new StoreError("TOO_LARGE", `a lease has at most ${LEASE_KEYS_MAX} keys`);
      added.set(op.lease, count);
    }
  }

  /** Updates the keys of leases for a commit. */
  apply(commit: Commit): void {
    for (const { key, lease, older } of commit.changes) {
      if (older?.lease !== undefined && older.lease !== lease)
        this.#leases.get(older.lease)?.keys.delete(key);
      if (lease !== undefined) this.#leases.get(lease)?.keys.add(key);
    }
  }

  /** Removes the lease and returns the keys that were attached to it. */
  remove(id: LeaseId): string[] {
    const keys = [...(this.#leases.get(id)?.keys ?? [])];
    this.#leases.delete(id);
    return keys;
  }

  has(id: LeaseId): boolean {
    return this.#leases.has(id);
  }

  close(): void {
    this.#timer.stop();
    this.#leases.clear();
  }

  #start(id: LeaseId, ttlMs: number): LeaseState {
    const lease = { ttlMs, keys: new Set<string>(), deadlineMs: this.#clock.monotonicMs() + ttlMs };
    this.#leases.set(id, lease);
    this.#timer.fireBy(lease.deadlineMs);
    return lease;
  }

  #live(id: LeaseId): LeaseState {
    const lease = this.#leases.get(id);
    // Timers may be late, so the deadline decides.
    if (lease === undefined || lease.deadlineMs <= this.#clock.monotonicMs()) {
      throw new StoreError("LEASE_NOT_FOUND", `the lease ${id} does not exist or has ended`);
    }
    return lease;
  }

  #sweep(): void {
    const nowMs = this.#clock.monotonicMs();
    let earliestMs = Number.POSITIVE_INFINITY;
    for (const [id, lease] of this.#leases) {
      if (lease.deadlineMs <= nowMs) this.#expire(id);
      else earliestMs = Math.min(earliestMs, lease.deadlineMs);
    }
    this.#timer.fireBy(earliestMs);
  }
}

/** Returns a lease id that contains the time to live, so that a record describes its lease completely. */
function formatLeaseId(name: string, ttlMs: number): LeaseId {
  return `${name}@${ttlMs}` as LeaseId;
}

function leaseTtlMs(id: LeaseId): number {
  const ttlMs = Number(id.slice(id.lastIndexOf("@") + 1));
  if (!Number.isFinite(ttlMs))
    throw new StoreError("CORRUPT", `the lease id ${JSON.stringify(id)} has no time to live`);
  return ttlMs;
}
