import assert from "node:assert/strict";
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { type TestContext, test } from "node:test";
import { VirtualClock } from "@forage/common/virtual-clock";
import { until } from "../../../test/until.ts";
import { prepareHelpers } from "./helper-programs.ts";
import { CHECK_INTERVAL_MS, HelperWatch } from "./helper-watch.ts";

test("restores programs that are removed or changed while the agent runs", async (t) => {
  const { dir, watch, notes } = await start(t);
  const { terminalLogger, streamLogger } = await prepareHelpers(dir, { tty: true });
  const before = await Promise.all([terminalLogger, streamLogger].map(textOf));
  await rm(terminalLogger);
  await writeFile(streamLogger, "changed");

  await watch.check();

  assert.deepEqual(await Promise.all([terminalLogger, streamLogger].map(textOf)), before);
  assert.deepEqual(notes.sort(), [
    "stream-logger: it is not what the agent wrote",
    "terminal-logger: it is missing",
  ]);
});

test("reports damage that can't be repaired once", async (t) => {
  const { dir, watch, notes } = await start(t);
  await writeFile(join(dir, "streams-0123456789ab"), "damaged");
  for (let look = 0; look < 3; look++) await watch.check();
  assert.deepEqual(notes, ["streams-0123456789ab: it is not what the agent wrote"]);
});

test("reports a failed check, and restores the programs at the next one", async (t) => {
  const { dir, watch, errors } = await start(t);
  const names = (await readdir(dir)).sort();
  await rm(dir, { recursive: true });
  await writeFile(dir, "in the way");
  await watch.check();
  assert.equal(errors.length, 1);
  await rm(dir);
  await watch.check();
  assert.deepEqual((await readdir(dir)).sort(), names);
});

test("repeats the check until it is closed", async (t) => {
  const { dir, watch, clock } = await start(t);
  const logger = join(dir, "terminal-logger");
  for (let look = 0; look < 2; look++) {
    await rm(logger);
    await until("the program is there again", async () => {
      await clock.run(CHECK_INTERVAL_MS);
      return (await textOf(logger)) !== undefined;
    });
  }
  await watch.close();
  await rm(logger);
  await clock.run(10 * CHECK_INTERVAL_MS);
  await watch.close();
  assert.equal(await textOf(logger), undefined);
});

async function start(t: TestContext) {
  const root = await mkdtemp(join(tmpdir(), "forage-helper-watch-"));
  const dir = join(root, "programs");
  const clock = new VirtualClock();
  const notes: string[] = [];
  const errors: unknown[] = [];
  const watch = await HelperWatch.start({
    ...{ dir, ociRuntimes: [], clock },
    noteDamage: (path, reason) => notes.push(`${basename(path)}: ${reason}`),
    onError: (error) => errors.push(error),
  });
  t.after(async () => {
    await watch.close();
    await rm(root, { recursive: true, force: true });
  });
  assert.deepEqual(notes, []);
  return { dir, watch, clock, notes, errors };
}

function textOf(path: string): Promise<string | undefined> {
  return readFile(path, "utf8").catch(() => undefined);
}
