import assert from "node:assert/strict";
import { test } from "node:test";
import { VirtualClock } from "@forage/common/virtual-clock";
import { BackupRecord, InstanceRecord } from "@forage/proto/forage/workspaces/v1/records";
import { toTimestamp } from "../../model/timestamp.ts";
import { backupKey } from "../keys.ts";
import { BackupRetention, expiredBackups } from "./backup-retention.ts";

const DAY_MS = 86_400_000;
const NOW_MS = 1_000 * DAY_MS;
const OLD = aBackup("old", 400, 31);
const IN_USE = aBackup("in-use", 400);
const RECENT = aBackup("recent", 29, 400);
const BACKUPS = [OLD, IN_USE, RECENT];

test("backups expire by the age of the newest one, except those of a workspace with an instance", () => {
  const expired = (maxAgeDays: number) =>
    expiredBackups(BACKUPS, (key) => key === IN_USE.key, maxAgeDays, NOW_MS).map(({ key }) => key);
  assert.deepEqual(expired(30), [OLD.key]);
  assert.deepEqual(expired(31), []);
  assert.deepEqual(expired(20), [OLD.key, RECENT.key]);
  assert.deepEqual(expired(0), [], "0 means without a limit");
});

test("keeps backups while the wall clock is years ahead, and removes expired ones after the grace period", async () => {
  const clock = new VirtualClock({ startMs: NOW_MS });
  const removed: string[] = [];
  const metadata = { owner: "owner", metaId: "in-use" };
  const retention = new BackupRetention({
    view: {
      instances: () => [{ key: "i", revision: 1, record: InstanceRecord.fromPartial({ metadata }) }],
      backups: () => BACKUPS.filter(({ key }) => !removed.includes(key)),
    },
    writer: {
      transact: async (compares, ops) => {
        const keys = ops.flatMap((op) => (op.type === "delete" ? [op.key] : []));
        const expected = keys.map((key) => ({ type: "mod-revision" as const, key, revision: 7 }));
        assert.deepEqual(compares, expected);
        removed.push(...keys);
        return true;
      },
    },
    ...{ clock, maxAgeDays: 30, graceMs: DAY_MS / 2 },
  });
  const sweep = async (ms: number): Promise<string[]> => {
    clock.advance(ms);
    await retention.removeExpired();
    return [...removed];
  };
  clock.jumpWall(1_000 * DAY_MS);
  assert.deepEqual(await sweep(0), []);
  clock.jumpWall(-1_000 * DAY_MS);
  assert.deepEqual(await sweep(DAY_MS / 4), []);
  assert.deepEqual(await sweep(DAY_MS / 4), [OLD.key]);
  assert.deepEqual(await sweep(DAY_MS / 4), [OLD.key]);
});

function aBackup(metaId: string, ...ages: readonly number[]) {
  const owner = "owner";
  const generations = ages.map((days) => ({ at: toTimestamp(NOW_MS - days * DAY_MS) }));
  const record = BackupRecord.fromPartial({ owner, metaId, generations });
  return { key: backupKey({ owner, metaId }), revision: 7, record };
}
