import type { Random } from "@forage/common/random";
import type { Compare, Lease, LeaseId, Op, Store } from "../store.ts";
import { StoreError } from "../store-error.ts";
import { bytes } from "./fixture.ts";
import type { Call, Recorder } from "./recorder.ts";

/** The keys. They are few, so that clients often use the same one. */
const KEYS = ["a", "a/1", "a/2", "a/3", "b", "b/1", "b/2"];
const PREFIXES = ["", "a", "a/", "b/"];
/** The time to live of leases. None expires, because a client could not know at which revision. */
const LEASE_MS = 24 * 3_600_000;

/** Makes random calls one after the other, and records their results. */
export async function runClient(
  store: Store,
  recorder: Recorder,
  random: Random,
  client: number,
  calls: number,
): Promise<void> {
  let lease: Lease | undefined;
  for (let i = 0; i < calls; i++) {
    if (random.chance(0.15)) lease = await nextLease(lease, store, recorder, random);
    const run = await randomCall(store, random, { value: `${client}.${i}`, lease: lease?.id });
    await recorder.record(run, () => store.revision);
    if (random.chance(0.03)) await store.compact(Math.max(0, store.revision - 20));
  }
  if (lease !== undefined) await recorder.revoke(lease, () => store.revision);
}

/** Grants a lease, keeps the current one alive, or ends it. */
async function nextLease(
  lease: Lease | undefined,
  store: Store,
  recorder: Recorder,
  random: Random,
): Promise<Lease | undefined> {
  if (lease === undefined) return store.lease(LEASE_MS);
  if (random.chance(0.5)) {
    await recorder.revoke(lease, () => store.revision);
    return undefined;
  }
  await lease.keepAlive();
  return random.chance(0.5) ? lease : store.findLease(lease.id);
}

/** The value and the lease of a put. */
interface Content {
  readonly value: string;
  readonly lease: LeaseId | undefined;
}

async function randomCall(store: Store, random: Random, content: Content): Promise<() => Promise<Call>> {
  const choice = random.below(10);
  if (choice < 6) {
    const compares = await randomCompares(store, random);
    const ops = randomOps(random, content);
    return async () => ({ type: "txn", compares, ops, result: await store.txn(compares, ops) });
  }
  const prefix = random.pick(PREFIXES);
  if (choice < 8)
    return async () => ({ type: "range", prefix, at: undefined, result: await store.range(prefix) });
  if (choice < 9) return () => rangeInThePast(store, random, prefix);
  const key = random.pick(KEYS);
  return async () => ({ type: "get", key, result: await store.get(key) });
}

async function rangeInThePast(store: Store, random: Random, prefix: string): Promise<Call> {
  for (;;) {
    const oldest = store.compactRevision;
    const at = oldest + random.below(store.revision - oldest + 1);
    try {
      return { type: "range", prefix, at, result: await store.range(prefix, { at }) };
    } catch (error) {
      if (!(error instanceof StoreError && error.code === "COMPACTED")) throw error;
    }
  }
}

/** Returns compares, most of which hold now. Another client may change the key before the transaction runs. */
async function randomCompares(store: Store, random: Random): Promise<Compare[]> {
  const compares: Compare[] = [];
  while (random.chance(0.5)) {
    const key = random.pick(KEYS);
    const found = await store.get(key);
    const choices: Compare[] = [
      { type: found === undefined ? "absent" : "exists", key },
      { type: "mod-revision", key, revision: found?.modRevision ?? 0 },
      { type: "create-revision", key, revision: found?.createRevision ?? 0 },
      { type: "version", key, version: found?.version ?? 0 },
      { type: "value", key, value: found?.value ?? bytes("none") },
    ];
    compares.push(random.pick(choices));
  }
  return compares;
}

function randomOps(random: Random, { value, lease }: Content): Op[] {
  if (random.chance(0.05)) return [{ type: "delete-prefix", prefix: random.pick(["a/", "b"]) }];
  const ops = new Map<string, Op>();
  for (let i = random.below(4); i >= 0; i--) {
    const key = random.pick(KEYS);
    const isLeased = lease !== undefined && random.chance(0.5);
    const put = { type: "put", key, value: bytes(value), ...(isLeased && { lease }) } as const;
    ops.set(key, random.chance(0.7) ? put : { type: "delete", key });
  }
  return [...ops.values()];
}
