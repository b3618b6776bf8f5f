import assert from "node:assert/strict";
import { mkdir, mkdtemp, readdir, rm, rmdir } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { VirtualClock } from "@forage/common/virtual-clock";
import { until } from "../test/until.ts";
import { Journal } from "./journal/journal.ts";
import { loadJournalKey } from "./journal/journal-key.ts";
import { EMPTY_MEMORY } from "./pods/pod.ts";
import { StateSaver } from "./state-saver.ts";

test("a state that can't be written impairs the host until it is written", async (t) => {
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

test("a pod whose state could not be written impairs the host no longer once it is forgotten", async (t) => {
  const { dir, saver, health } = await aSaver(t);
  await mkdir(join(dir, "states", "p1.state.tmp"));
  await saver.save("p1", EMPTY_MEMORY);
  assert.equal(health.length, 1);
  await saver.forget("p1");
  assert.deepEqual(health.slice(1), [undefined]);
});

test("a record that can't be removed is removed later", async (t) => {
  const { dir, clock, saver, health } = await aSaver(t);
  await saver.save("p1", EMPTY_MEMORY);
  // In place of the file, so that it can't be unlinked.
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

async function aSaver(t: TestContext) {
  const root = await mkdtemp(join(tmpdir(), "forage-saver-"));
  const dir = join(root, "journal");
  const journal = await Journal.open({
    dir,
    key: await loadJournalKey({ dir: root }),
    signal: new AbortController().signal,
  });
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
  return { dir, clock, saver, health };
}
