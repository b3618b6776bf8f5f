import assert from "node:assert/strict";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { VirtualClock } from "@forage/common/virtual-clock";
import { KeptLogs, type KeptLogsOptions } from "./kept-logs.ts";

const HOUR_MS = 3_600_000;

test("keeps a pod's logs until they expire, also over a restart of the agent", async (t) => {
  const { dir, clock, podDir, open } = setUp(t);
  await open().keep("p1", podDir("p1", { main: [1, 2], side: [1] }), HOUR_MS);
  assert.ok(!existsSync(join(dir, "pods", "p1")));
  const kept = open();
  await kept.adopt();
  assert.deepEqual(kept.find("p1", "main"), { container: "main", attempt: 2 });
  assert.deepEqual(kept.find("p1", "side"), { container: "side", attempt: 1 });
  assert.equal(kept.find("p1", "other"), undefined);
  assert.equal(kept.find("p2", "main"), undefined);
  const path = kept.pathOf({ podUid: "p1", container: "main", attempt: 1 });
  assert.ok(path !== undefined && existsSync(path));
  clock.advance(HOUR_MS);
  await settled(() => kept.find("p1", "main") === undefined && keptIn(dir).length === 0);
});

test("deletes logs at its start that expired while no agent ran", async (t) => {
  const { dir, clock, podDir, open } = setUp(t);
  const before = open();
  await before.keep("p1", podDir("p1", { main: [1] }), HOUR_MS);
  before.close();
  clock.jumpWall(2 * HOUR_MS);
  await open().adopt();
  assert.deepEqual(keptIn(dir), []);
});

test("deletes directories with foreign names, and names from a wrong clock", async (t) => {
  const { dir, clock, open } = setUp(t);
  const ahead = `${Math.round(clock.nowMs()) + 48 * HOUR_MS}-p1`;
  for (const name of ["foreign", ahead]) mkdirSync(join(dir, "kept-logs", name), { recursive: true });
  const kept = open();
  await kept.adopt();
  assert.deepEqual(keptIn(dir), []);
});

test("limits the number of pods and bytes, and deletes the oldest first", async (t) => {
  const { dir, clock, podDir, open } = setUp(t);
  const kept = open({ maxBytes: 100_000 });
  for (const uid of ["p1", "p2", "p3"]) {
    await kept.keep(uid, podDir(uid, { main: [1] }, 40_000), HOUR_MS);
    clock.advance(1000);
  }
  assert.equal(kept.find("p1", "main"), undefined);
  assert.equal(keptIn(dir).length, 2);
  const many = open();
  await many.adopt();
  for (let n = 0; n < 40; n++) await many.keep(`m${n}`, podDir(`m${n}`, { main: [1] }), HOUR_MS + n);
  assert.equal(keptIn(dir).length, 32);
});

test("keeps nothing for a pod without logs, and changes nothing when a pod is kept twice", async (t) => {
  const { dir, podDir, open, errors } = setUp(t);
  const kept = open();
  await kept.keep("p1", join(dir, "pods", "p1"), HOUR_MS);
  assert.equal(kept.find("p1", "main"), undefined);
  await kept.keep("p2", podDir("p2", { main: [1] }), HOUR_MS);
  await kept.keep("p2", join(dir, "pods", "p2"), HOUR_MS);
  assert.equal(kept.find("p2", "main")?.attempt, 1);
  assert.deepEqual(errors, []);
});

function keptIn(dir: string): string[] {
  const at = join(dir, "kept-logs");
  return existsSync(at) ? readdirSync(at) : [];
}

async function settled(condition: () => boolean): Promise<void> {
  for (let turns = 0; turns < 1000 && !condition(); turns++)
    await new Promise((resolve) => setTimeout(resolve, 5));
  assert.ok(condition());
}

function setUp(t: TestContext) {
  const dir = mkdtempSync(join(tmpdir(), "forage-kept-"));
  const clock = new VirtualClock();
  const errors: unknown[] = [];
  const opened: KeptLogs[] = [];
  t.after(() => {
    for (const kept of opened) kept.close();
    rmSync(dir, { recursive: true });
  });
  const open = (options: Partial<KeptLogsOptions> = {}): KeptLogs => {
    const onError = (error: unknown): void => void errors.push(error);
    const kept = new KeptLogs(join(dir, "kept-logs"), { clock, onError, ...options });
    opened.push(kept);
    return kept;
  };
  const podDir = (uid: string, logs: Readonly<Record<string, readonly number[]>>, bytes = 10): string => {
    for (const [container, attempts] of Object.entries(logs)) {
      const at = join(dir, "pods", uid, container);
      mkdirSync(at, { recursive: true });
      for (const attempt of attempts) writeFileSync(join(at, `${attempt}.log`), "x".repeat(bytes));
    }
    return join(dir, "pods", uid);
  };
  return { dir, clock, errors, open, podDir };
}
