import type { Random } from "@forage/common/random";
import type { Compare, Op, Store } from "../store.ts";
import { StoreError } from "../store-error.ts";
import { bytes } from "./fixture.ts";
import type { Call, Recorder } from "./recorder.ts";

/** Few, so that clients get in each other's way. */
const KEYS = ["a", "a/1", "a/2", "a/3", "b", "b/1", "b/2"];
const PREFIXES = ["", "a", "a/", "b/"];

/** Does random calls, one after the other, and records what came back. */
export async function runClient(
  store: Store,
  recorder: Recorder,
  random: Random,
  client: number,
  calls: number,
): Promise<void> {
  for (let i = 0; i < calls; i++) {
    const run = await randomCall(store, random, `${client}.${i}`);
    await recorder.record(run, () => store.revision);
    if (random.chance(0.03)) await store.compact(Math.max(0, store.revision - 20));
  }
}

async function randomCall(store: Store, random: Random, value: string): Promise<() => Promise<Call>> {
  const choice = random.below(10);
  if (choice < 6) {
    const compares = await randomCompares(store, random);
    const ops = randomOps(random, value);
    return async () => ({ kind: "txn", compares, ops, result: await store.txn(compares, ops) });
  }
  const prefix = random.pick(PREFIXES);
  if (choice < 8)
    return async () => ({ kind: "range", prefix, at: undefined, result: await store.range(prefix) });
  if (choice < 9) return () => rangeInThePast(store, random, prefix);
  const key = random.pick(KEYS);
  return async () => ({ kind: "get", key, result: await store.get(key) });
}

async function rangeInThePast(store: Store, random: Random, prefix: string): Promise<Call> {
  for (;;) {
    const oldest = store.compactRevision;
    const at = oldest + random.below(store.revision - oldest + 1);
    try {
      return { kind: "range", prefix, at, result: await store.range(prefix, { at }) };
    } catch (error) {
      if (!(error instanceof StoreError && error.code === "COMPACTED")) throw error;
    }
  }
}

/** Mostly what the key is like now, which another client may change before the transaction comes. */
async function randomCompares(store: Store, random: Random): Promise<Compare[]> {
  const compares: Compare[] = [];
  while (random.chance(0.5)) {
    const key = random.pick(KEYS);
    const found = await store.get(key);
    const choices: Compare[] = [
      { kind: found === undefined ? "absent" : "exists", key },
      { kind: "modRevision", key, revision: found?.modRevision ?? 0 },
      { kind: "createRevision", key, revision: found?.createRevision ?? 0 },
      { kind: "version", key, version: found?.version ?? 0 },
      { kind: "value", key, value: found?.value ?? bytes("none") },
    ];
    compares.push(random.pick(choices));
  }
  return compares;
}

function randomOps(random: Random, value: string): Op[] {
  if (random.chance(0.05)) return [{ kind: "deletePrefix", prefix: random.pick(["a/", "b"]) }];
  const ops = new Map<string, Op>();
  for (let i = random.below(4); i >= 0; i--) {
    const key = random.pick(KEYS);
    ops.set(key, random.chance(0.7) ? { kind: "put", key, value: bytes(value) } : { kind: "delete", key });
  }
  return [...ops.values()];
}
