import assert from "node:assert/strict";
import { test } from "node:test";
import { VirtualClock } from "@forage/common/virtual-clock";
import { SnapshotRecord } from "@forage/proto/forage/workspaces/v1/records";
import { toTimestamp } from "../../model/timestamp.ts";
import { expiredSnapshots, SnapshotRetention } from "./snapshot-retention.ts";

const DAY_MS = 86_400_000;
const NOW_MS = 1_000 * DAY_MS;
const SNAPSHOTS = [
  ["o/a/1", 400],
  ["o/a/2", 3],
  ["o/a/3", 2],
  ["o/a/4", 1],
  ["o/b/1", 366],
  ["o/b/2", 1],
] as const;
const entries = SNAPSHOTS.map(([object, days]) => ({
  key: object,
  revision: 1,
  record: SnapshotRecord.fromPartial({ archive: { object }, at: toTimestamp(NOW_MS - days * DAY_MS) }),
}));

function expired(
  limits: { readonly perWorkspace: number; readonly maxAgeDays: number },
  referred = "",
): string[] {
  return expiredSnapshots(entries, (object) => object === referred, limits, NOW_MS).map(({ key }) => key);
}

test("removes snapshots that are too old, and those beyond the limit of their workspace", () => {
  assert.deepEqual(expired({ perWorkspace: 100, maxAgeDays: 365 }).sort(), ["o/a/1", "o/b/1"]);
  assert.deepEqual(expired({ perWorkspace: 2, maxAgeDays: 0 }).sort(), ["o/a/1", "o/a/2"]);
  assert.deepEqual(expired({ perWorkspace: 100, maxAgeDays: 0 }), []);
});

test("keeps an expired snapshot that something refers to", () => {
  assert.deepEqual(expired({ perWorkspace: 2, maxAgeDays: 365 }, "o/a/1").sort(), ["o/a/2", "o/b/1"]);
});

test("keeps snapshots while the wall clock is years ahead, and removes old ones after the grace period", async () => {
  const clock = new VirtualClock({ startMs: NOW_MS });
  const removed: string[] = [];
  const retention = new SnapshotRetention({
    view: { instances: () => [], snapshots: () => entries.filter(({ key }) => !removed.includes(key)) },
    writer: {
      transact: async (compares) => {
        removed.push(...compares.map(({ key }) => key));
        return true;
      },
    },
    limits: { perWorkspace: 3, maxAgeDays: 365 },
    ...{ clock, graceMs: DAY_MS },
  });
  const sweep = async (ms: number): Promise<string[]> => {
    clock.advance(ms);
    await retention.removeExpired();
    return [...removed];
  };
  // Without the restore that refers to it, the fourth snapshot exceeds the limit of three.
  assert.deepEqual(await sweep(0), ["o/a/1"]);
  clock.jumpWall(1_000 * DAY_MS);
  assert.deepEqual(await sweep(3_600_000), ["o/a/1"]);
  clock.jumpWall(-1_000 * DAY_MS);
  assert.deepEqual(await sweep(DAY_MS - 3_600_000), ["o/a/1", "o/b/1"]);
  assert.deepEqual(await sweep(DAY_MS), ["o/a/1", "o/b/1"]);
});
