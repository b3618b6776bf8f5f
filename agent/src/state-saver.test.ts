import assert from "node:assert/strict";
import { mkdir, mkdtemp, readdir, rm, rmdir } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { VirtualClock } from "@forage/common/virtual-clock";
import { PodAssignment } from "@forage/proto/forage/agent/v1/agent";
import { until } from "../test/until.ts";
import { Journal } from "./journal/journal.ts";
import { loadJournalKey } from "./journal/journal-key.ts";
import { EMPTY_MEMORY } from "./pods/pod.ts";
import { StateSaver } from "./state-saver.ts";

test("reports the host as impaired while a state can't be written", async (t) => {
  const { dir, clock, saver, health } = await aSaver(t);
  const inTheWay = join(dir, "states", "p1.state.tmp");
  await mkdir(inTheWay);
  await saver.save("p1", EMPTY_MEMORY);
  await saver.save("p2", EMPTY_MEMORY);
  assert.equal(health.length, 1);
  assert.match(health[0] ?? "", /could not be written/);
  await rmdir(inTheWay);
  await until("it works again", async () => {
    await clock.run(1_000);
    return health.length === 2;
  });
  assert.equal(health[1], undefined);
  assert.deepEqual((await readdir(join(dir, "states"))).sort(), ["p1.state", "p2.state"]);
});

test("an unwritten state of a forgotten pod no longer impairs the host", async (t) => {
  const { dir, saver, health } = await aSaver(t);
  await mkdir(join(dir, "states", "p1.state.tmp"));
  await saver.save("p1", EMPTY_MEMORY);
  assert.equal(health.length, 1);
  await saver.forget("p1");
  assert.deepEqual(health.slice(1), [undefined]);
});

test("retries the removal of a record", async (t) => {
  const { dir, clock, saver, health } = await aSaver(t);
  await saver.save("p1", EMPTY_MEMORY);
  // A directory in place of the file, so that it can't be unlinked.
  const file = join(dir, "states", "p1.state");
  await rm(file);
  await mkdir(file);
  await saver.forget("p1");
  assert.equal(health.length, 1);
  await rmdir(file);
  await until("it works again", async () => {
    await clock.run(1_000);
    return health.length === 2;
  });
  assert.equal(health[1], undefined);
});

test("a removed pod whose state can't be written loses its record, so that a restart doesn't start it", async (t) => {
  const { dir, journal, saver, health, open } = await aSaver(t);
  const pods = ["p1", "p2"].map((uid) => PodAssignment.fromPartial({ uid }));
  await journal.replace({ clusterId: "c", revision: 1n, pods });
  await mkdir(join(dir, "states", "p1.state.tmp"));
  for (const uid of ["p1", "p2"]) await saver.saveRemoved(uid, { ...EMPTY_MEMORY, removed: true });
  assert.match(health[0] ?? "", /could not be written/);
  assert.equal(journal.state("p2")?.removed, true);
  await rmdir(join(dir, "states", "p1.state.tmp"));

  const restarted = await open();
  for (const seen of [journal, restarted]) {
    assert.deepEqual([...seen.desired().keys()], ["p2"]);
    assert.deepEqual([...seen.damaged], ["p1"]);
    assert.equal(seen.resumeRevision, 0n);
  }
  await restarted.replace({ clusterId: "c", revision: 2n, pods });
  assert.deepEqual([...restarted.desired().keys()].sort(), ["p1", "p2"]);
  assert.deepEqual([...restarted.damaged], []);
});

test("rejects an outcome that can't be written with the reason, until it is on disk", async (t) => {
  const { dir, saver } = await aSaver(t);
  await mkdir(join(dir, "states", "p1.state.tmp"));
  await assert.rejects(
    saver.saveOutcome("p1", EMPTY_MEMORY),
    /not on disk: the journal could not be written/,
  );
  await rmdir(join(dir, "states", "p1.state.tmp"));
  await saver.saveOutcome("p1", EMPTY_MEMORY);
});

test("the removal of a pod is not saved if its record can't be removed either", async (t) => {
  const { dir, journal, saver } = await aSaver(t);
  await journal.replace({ clusterId: "c", revision: 1n, pods: [PodAssignment.fromPartial({ uid: "p1" })] });
  await mkdir(join(dir, "states", "p1.state.tmp"));
  // A directory in place of the record, so that it can't be unlinked.
  const [record = ""] = await readdir(join(dir, "pods"));
  await rm(join(dir, "pods", record));
  await mkdir(join(dir, "pods", record));
  await assert.rejects(saver.saveRemoved("p1", { ...EMPTY_MEMORY, removed: true }), /could not be written/);
});

async function aSaver(t: TestContext) {
  const root = await mkdtemp(join(tmpdir(), "forage-saver-"));
  const dir = join(root, "journal");
  const key = await loadJournalKey({ dir: root });
  const open = () => Journal.open({ dir, key, signal: new AbortController().signal });
  const journal = await open();
  const clock = new VirtualClock();
  const health: (string | undefined)[] = [];
  const saver = new StateSaver({
    ...{ journal, clock, onError: () => undefined },
    onHealth: (problem) => health.push(problem),
  });
  t.after(async () => {
    await saver.close();
    await journal.close();
    await rm(root, { recursive: true, force: true });
  });
  return { dir, clock, journal, saver, health, open };
}
