import type { VirtualClock } from "@forage/common/virtual-clock";
import type {
  EtcdCompare,
  EtcdOp,
  EtcdQuery,
  EtcdRange,
  EtcdRecord,
  EtcdTxn,
  EtcdTxnResult,
} from "../../coordinator/src/store/etcd/etcd.ts";
import { EtcdError } from "../../coordinator/src/store/etcd/etcd-error.ts";

interface Version {
  readonly modRevision: bigint;
  /** The record; undefined if the key was deleted at the revision. */
  readonly record: EtcdRecord | undefined;
}

interface SimLease {
  readonly ttlMs: number;
  readonly keys: Set<string>;
  stop: () => void;
}

/** The default of etcd's --max-txn-ops. */
const TXN_OPS_MAX = 128;

/** The state of an etcd cluster on virtual time. Methods take effect at once; an `EtcdLink` carries calls to them. */
export class SimEtcd {
  /** True while a majority of the members answers. */
  up = true;
  readonly #time: VirtualClock;
  readonly #versions = new Map<string, Version[]>();
  readonly #leases = new Map<bigint, SimLease>();
  readonly #leaseOf = new Map<string, bigint>();
  readonly #watchers = new Map<string, Set<() => void>>();
  /** All keys of `#versions`, sorted. */
  #keys: string[] = [];
  #revision = 1n;
  #compacted = 0n;
  #leaseIds = 0n;

  constructor(time: VirtualClock) {
    this.#time = time;
  }

  range({ from, to, limit = 0, at = this.#revision }: EtcdQuery): EtcdRange {
    if (at < this.#compacted) throw new EtcdError("COMPACTED", `revision ${at} has been compacted`);
    const keys = to === undefined ? [from] : this.#keys.slice(this.#place(from), this.#place(to));
    const found: EtcdRecord[] = [];
    for (const key of keys) {
      const record = this.#recordAt(key, at);
      if (record === undefined) continue;
      if (limit > 0 && found.length === limit)
        return { records: found, more: true, revision: this.#revision };
      found.push(record);
    }
    return { records: found, more: false, revision: this.#revision };
  }

  txn({ compares, ops, otherwise = [] }: EtcdTxn): EtcdTxnResult {
    refuseInvalid(ops);
    if (!compares.every((compare) => this.#holds(compare))) {
      const found = otherwise.map((key) => this.#recordAt(key, this.#revision));
      return { succeeded: false, revision: this.#revision, found };
    }
    for (const op of ops)
      if (op.type === "put" && op.lease !== undefined && !this.#leases.has(op.lease))
        throw new EtcdError("REJECTED", "requested lease not found");
    this.#write(ops);
    return { succeeded: true, revision: this.#revision, found: [] };
  }

  compact(revision: bigint): void {
    if (revision <= this.#compacted)
      throw new EtcdError("COMPACTED", `revision ${revision} has been compacted`);
    if (revision > this.#revision) throw new EtcdError("COMPACTED", `revision ${revision} is in the future`);
    this.#compacted = revision;
    for (const [key, versions] of this.#versions) {
      const last = versions.findLastIndex(({ modRevision }) => modRevision <= revision);
      if (last > 0) versions.splice(0, last);
      if (versions.length === 1 && versions[0]?.record === undefined) this.#versions.delete(key);
    }
    this.#keys = this.#keys.filter((key) => this.#versions.has(key));
  }

  grantLease(ttlSeconds: number): bigint {
    const id = ++this.#leaseIds;
    const lease: SimLease = { ttlMs: ttlSeconds * 1000, keys: new Set(), stop: () => {} };
    this.#leases.set(id, lease);
    this.keepLeaseAlive(id);
    return id;
  }

  keepLeaseAlive(id: bigint): boolean {
    const lease = this.#leases.get(id);
    if (lease === undefined) return false;
    lease.stop();
    lease.stop = this.#time.schedule(lease.ttlMs, () => this.#expire(id));
    return true;
  }

  revokeLease(id: bigint): void {
    const lease = this.#leases.get(id);
    if (lease === undefined) return;
    lease.stop();
    this.#leases.delete(id);
    this.#write([...lease.keys].map((from) => ({ type: "delete", from })));
  }

  /**
   * Calls `changed` once: at once if the key was changed after the revision, otherwise when it changes. Returns a
   * function that cancels the watch.
   */
  watch(key: string, after: bigint, changed: () => void): () => void {
    if ((this.#versions.get(key)?.at(-1)?.modRevision ?? 0n) > after) {
      changed();
      return () => {};
    }
    const watchers = this.#watchers.get(key) ?? new Set();
    this.#watchers.set(key, watchers);
    watchers.add(changed);
    return () => watchers.delete(changed);
  }

  /** Ends a lease, unless no majority answers: etcd counts the time of leases only while it has a leader. */
  #expire(id: bigint): void {
    if (this.up) this.revokeLease(id);
    else this.keepLeaseAlive(id);
  }

  #holds({ type, key, revision }: EtcdCompare): boolean {
    const record = this.#recordAt(key, this.#revision);
    const found = type === "create-revision" ? record?.createRevision : record?.modRevision;
    return (found ?? 0n) === revision;
  }

  #write(ops: readonly EtcdOp[]): void {
    const revision = this.#revision + 1n;
    const changed = new Set<string>();
    for (const op of ops) {
      const keys = op.type === "put" ? [op.key] : this.range(op).records.map(({ key }) => key);
      for (const key of keys) {
        this.#put(key, op, revision);
        changed.add(key);
      }
    }
    if (changed.size > 0) this.#revision = revision;
    for (const key of changed) {
      const watchers = [...(this.#watchers.get(key) ?? [])];
      this.#watchers.delete(key);
      for (const run of watchers) run();
    }
  }

  #put(key: string, op: EtcdOp, modRevision: bigint): void {
    const before = this.#leaseOf.get(key);
    if (before !== undefined) this.#leases.get(before)?.keys.delete(key);
    this.#leaseOf.delete(key);
    const versions = this.#versions.get(key) ?? [];
    if (versions.length === 0) this.#keys.splice(this.#place(key), 0, key);
    this.#versions.set(key, versions);
    if (op.type === "delete") {
      versions.push({ modRevision, record: undefined });
      return;
    }
    const createRevision = versions.at(-1)?.record?.createRevision ?? modRevision;
    versions.push({
      modRevision,
      record: { key, value: Buffer.from(op.value), createRevision, modRevision },
    });
    if (op.lease === undefined) return;
    this.#leaseOf.set(key, op.lease);
    this.#leases.get(op.lease)?.keys.add(key);
  }

  #recordAt(key: string, revision: bigint): EtcdRecord | undefined {
    return this.#versions.get(key)?.findLast(({ modRevision }) => modRevision <= revision)?.record;
  }

  /** Returns the index of the first key that is not before this one. */
  #place(key: string): number {
    let [low, high] = [0, this.#keys.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#keys[middle] ?? "") < key) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

/** Rejects invalid transactions as etcd does, which checks all operations before it evaluates the compares. */
function refuseInvalid(ops: readonly EtcdOp[]): void {
  if (ops.length > TXN_OPS_MAX) throw new EtcdError("REJECTED", "too many operations in txn request");
  const puts = new Set<string>();
  for (const op of ops) {
    if (op.type !== "put") continue;
    if (puts.has(op.key)) throw new EtcdError("REJECTED", "duplicate key given in txn request");
    puts.add(op.key);
  }
  for (const op of ops) {
    if (op.type === "put") continue;
    const { from, to } = op;
    const overlaps = to === undefined ? puts.has(from) : [...puts].some((key) => key >= from && key < to);
    if (overlaps) throw new EtcdError("REJECTED", "duplicate key given in txn request");
  }
}
