import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { execPath } from "node:process";
import { test } from "node:test";
import { Journal } from "../src/journal/journal.ts";
import { loadJournalKey } from "../src/journal/journal-key.ts";
import { expectedAt } from "./journal-load.ts";

const KILLS = 50;
const WRITER = join(import.meta.dirname, "journal-writer.ts");

test(`${KILLS} kills during writes lose no acknowledged record and leave no partial one`, async (t) => {
  const dir = await mkdtemp(join(tmpdir(), "forage-journal-kill-"));
  t.after(() => rm(dir, { recursive: true, force: true }));
  let cutOff = 0;
  for (let kill = 0; kill < KILLS; kill++) {
    // Kills at a different delay after the first acknowledgement each time.
    const acknowledged = await writeUntilKilled(dir, kill % 7, kill % 13);
    const key = await loadJournalKey({ dir: join(dir, "key") });
    const journal = await Journal.open({ dir, key, signal: AbortSignal.timeout(60_000) });
    assert.deepEqual(journal.problems, []);
    assert.ok(journal.revision >= acknowledged, `revision ${journal.revision}, acknowledged ${acknowledged}`);
    const found = new Map([...journal.desired()].map(([uid, pod]) => [uid, pod.specHash]));
    assert.deepEqual(found, expectedAt(journal.revision), `after kill ${kill}`);
    assert.ok(
      (journal.state("pod-1")?.startedAtMs ?? 0) >= Number(acknowledged),
      "its state was acknowledged too",
    );
    if (journal.revision > acknowledged) cutOff++;
    await journal.close();
  }
  t.diagnostic(`${cutOff} of ${KILLS} kills hit between commit and acknowledgement`);
});

async function writeUntilKilled(dir: string, deltas: number, delayMs: number): Promise<bigint> {
  const child = spawn(execPath, [WRITER, dir], { stdio: ["ignore", "pipe", "inherit"] });
  const ended = new Promise<string | null>((resolve) => child.on("exit", (_code, signal) => resolve(signal)));
  let output = "";
  let timer: NodeJS.Timeout | undefined;
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    output += text;
    if (timer === undefined && output.split("\n").length > deltas + 1) timer = killLater(child, delayMs);
  });
  assert.equal(await ended, "SIGKILL", "the writer must not end by itself");
  return BigInt(output.slice(0, output.lastIndexOf("\n")).split("\n").at(-1) ?? "");
}

function killLater(child: ChildProcess, delayMs: number): NodeJS.Timeout {
  return setTimeout(() => child.kill("SIGKILL"), delayMs);
}
