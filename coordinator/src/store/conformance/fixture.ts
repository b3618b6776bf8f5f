import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as delay, setImmediate as nextTurn } from "node:timers/promises";
import { VirtualClock } from "@forage/common/virtual-clock";
import type { Clock } from "../clock.ts";
import type { Op, Revision, Store, WatchBatch } from "../store.ts";
import { StoreError, type StoreErrorCode } from "../store-error.ts";

/** Opens an empty store. `dispose` removes what it created on disk. */
export type StoreFactory = (options: StoreFactoryOptions) => Promise<OpenedStore>;

export interface StoreFactoryOptions {
  readonly clock: Clock;
  readonly historyRevisions?: number;
  readonly historyAgeMs?: number;
}

export interface OpenedStore {
  readonly store: Store;
  dispose(): Promise<void>;
}

export interface Fixture {
  readonly store: Store;
  readonly clock: VirtualClock;
}

export interface CaseOptions {
  readonly historyRevisions?: number;
  readonly historyAgeMs?: number;
}

/** Declares one test with a fresh store. */
export function storeCase(
  open: StoreFactory,
  name: string,
  run: (bench: Fixture) => Promise<void>,
  options: CaseOptions = {},
): void {
  test(name, { timeout: CASE_LIMIT_MS }, async () => {
    const clock = new VirtualClock();
    const { store, dispose } = await open({ clock, ...options });
    try {
      await run({ store, clock });
    } finally {
      await store.close();
      await dispose();
    }
  });
}

export function bytes(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

export function text(value: Uint8Array | undefined): string | undefined {
  return value === undefined ? undefined : new TextDecoder().decode(value);
}

export function put(key: string, value = key): Op {
  return { type: "put", key, value: bytes(value) };
}

/** Puts each key in a revision of its own. Returns the last revision. */
export async function putEach(store: Store, ...keys: readonly string[]): Promise<Revision> {
  for (const key of keys) await store.txn([], [put(key)]);
  return store.revision;
}

/** Returns all keys and values under the prefix. */
export async function contents(store: Store, prefix = "", at?: Revision): Promise<Record<string, string>> {
  const { records } = await store.range(prefix, at === undefined ? {} : { at });
  return Object.fromEntries(records.map((record) => [record.key, text(record.value) ?? ""]));
}

export async function rejectsWith(code: StoreErrorCode, promise: Promise<unknown>): Promise<StoreError> {
  const error = await promise.then(
    () => assert.fail(`expected ${code}, but it succeeded`),
    (reason: unknown) => reason,
  );
  assert.ok(error instanceof StoreError, `expected a StoreError, got ${String(error)}`);
  assert.equal(error.code, code, error.message);
  return error;
}

/** Returns the next batches of the watch. */
export async function nextBatches(watch: AsyncIterator<WatchBatch>, count: number): Promise<WatchBatch[]> {
  const batches: WatchBatch[] = [];
  while (batches.length < count) {
    const { done, value } = await watch.next();
    if (done === true) break;
    batches.push(value);
  }
  return batches;
}

/** Formats a batch as a line, such as `3 +a=1 -b`. */
export function print(batch: WatchBatch): string {
  const events = batch.events.map((event) =>
    event.type === "put" ? `+${event.record.key}=${text(event.record.value)}` : `-${event.key}`,
  );
  return [batch.revision, ...events].join(" ");
}

/** Waits until the condition holds, without advancing the store's clock. */
export async function until(
  condition: () => boolean | Promise<boolean>,
  what: string,
  limitMs = CONDITION_LIMIT_MS,
): Promise<void> {
  const sinceMs = performance.now();
  while (!(await condition())) {
    const waitedMs = performance.now() - sinceMs;
    if (waitedMs > limitMs) assert.fail(`not within ${limitMs} ms: ${what}`);
    await (waitedMs < EAGER_MS ? nextTurn() : delay(EVERY_MS));
  }
}

/**
 * The time for which conditions are checked in each turn of the event loop. Later checks leave the processor to the
 * programs for which the test waits.
 */
const EAGER_MS = 50;
const EVERY_MS = 5;

/** The limit of one test case. It is only reached by a defect. */
const CASE_LIMIT_MS = 60_000;

/** The limit of one condition, far above any healthy run on a busy machine. It is only reached by a defect. */
const CONDITION_LIMIT_MS = 10_000;
