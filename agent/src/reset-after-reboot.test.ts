import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { Journal } from "./journal/journal.ts";
import { JournalKey } from "./journal/journal-key.ts";
import { encodeBootId, type RebootOutcome, resetAfterReboot } from "./reset-after-reboot.ts";

interface Given {
  readonly dir: string;
  /** Starts an agent in this boot. */
  start(bootId: string): Promise<RebootOutcome>;
}

async function given(t: TestContext): Promise<Given> {
  const dir = await mkdtemp(join(tmpdir(), "forage-reboot-"));
  t.after(() => rm(dir, { recursive: true }));
  const start = async (bootId: string): Promise<RebootOutcome> => {
    const key = new JournalKey(Buffer.alloc(32, 7), "test");
    const journal = await Journal.open({ dir, key, signal: new AbortController().signal });
    try {
      return await resetAfterReboot({
        ...{ journal, bootId, nowMs: 1, noteDamage: () => undefined },
        ...{ bootIdFile: join(dir, "boot-id"), pendingFile: join(dir, "pending") },
      });
    } finally {
      await journal.close();
    }
  };
  return { dir, start };
}

test("the first agent of a boot detects the reboot, and later ones don't", async (t) => {
  const { start } = await given(t);
  for (const [bootId, rebooted] of [
    ["1", false],
    ["1", false],
    ["2", true],
    ["2", false],
  ] as const)
    assert.deepEqual(await start(bootId), { rebooted }, bootId);
});

test("does not report a reboot again that an earlier agent of the same boot has begun to record", async (t) => {
  const { dir, start } = await given(t);
  await start("1");
  await writeFile(join(dir, "pending"), encodeBootId("2"));
  assert.deepEqual(await start("2"), { rebooted: false });
});
