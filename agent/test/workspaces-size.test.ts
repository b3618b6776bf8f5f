import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { appendFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { ContentStage, TransferKind, TransferState } from "@forage/proto/forage/workspaces/v1/workspaces";
import { KillableAgent } from "./killable-agent.ts";
import { digestTree } from "./random-tree.ts";
import { until } from "./until.ts";
import { anOrder, WorkspaceHost, whyNoWorkspaces } from "./workspace-host.ts";

const options = { skip: whyNoWorkspaces ?? false, timeout: 120_000 };
const FINAL = { id: "final", kind: TransferKind.FINAL_BACKUP, object: "ada/meta/final.tar.zst" };
const MIB = 1024 * 1024;
const BLOCK_BYTES = 16 * MIB;
const BLOCKS = 12;
const FILES = 8_000;
/** An agent that held an archive in memory would need at least its 192 MiB. */
const GROWTH_MAX_BYTES = 144 * MIB;

test("backs up and restores content with far less memory than its size", options, async (t) => {
  const host = await WorkspaceHost.setUp(t);
  const agent = new KillableAgent(t, host);
  const ready = (id: string) =>
    until(`${id} is ready`, () => host.store.reports.get(id)?.stage === ContentStage.READY);
  host.store.order(anOrder("a"));
  agent.start();
  await ready("a");
  const content = host.layout.content("a");
  // Compression doesn't find repetitions that are so far apart.
  const block = randomBytes(BLOCK_BYTES);
  for (let index = 0; index < BLOCKS; index++) appendFileSync(join(content, "large"), block);
  mkdirSync(join(content, "many"));
  for (let index = 0; index < FILES; index++)
    writeFileSync(join(content, "many", `file-${index}`), `${index}`);
  const before = memoryBytes(agent.pid, "VmRSS");

  host.store.change("a", { transfers: [FINAL] });
  await until("it is stored", () => host.store.transfer("a", "final")?.state === TransferState.DONE, 60_000);
  const restore = host.store.transfer("a", "final")?.archive;
  assert.ok(Number(restore?.sizeBytes) > BLOCKS * BLOCK_BYTES, "the archive is as large as the content");
  host.store.order(anOrder("b", { restore }));
  await ready("b");

  const grownBytes = memoryBytes(agent.pid, "VmHWM") - before;
  assert.ok(grownBytes < GROWTH_MAX_BYTES, `the agent's memory grew by ${Math.round(grownBytes / MIB)} MiB`);
  assert.equal(await digestTree(host.layout.content("b")), await digestTree(content));
});

/**
 * Returns a field of the process's memory status. `VmHWM` is the highest value of `VmRSS` since the process started.
 */
function memoryBytes(pid: number, field: "VmRSS" | "VmHWM"): number {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  return Number(new RegExp(`^${field}:\\s+(\\d+) kB`, "m").exec(status)?.[1]) * 1024;
}
