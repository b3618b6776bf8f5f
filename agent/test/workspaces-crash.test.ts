import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { type TestContext, test } from "node:test";
import {
  type Archive,
  ContentStage,
  TransferKind,
  TransferState,
} from "@forage/proto/forage/workspaces/v1/workspaces";
import { KillableAgent } from "./killable-agent.ts";
import { digestTree, growTree } from "./random-tree.ts";
import { until } from "./until.ts";
import { anOrder, WorkspaceHost, whyNoWorkspaces } from "./workspace-host.ts";

const options = { skip: whyNoWorkspaces ?? false, timeout: 120_000 };
const FINAL = { id: "final", kind: TransferKind.FINAL_BACKUP, object: "ada/meta/final.tar.zst" };
const MIB = 1024 * 1024;
const CONTENT_BYTES = 24 * MIB;
const MANY_FILES = 20_000;

async function setUp(
  t: TestContext,
): Promise<{ agent: KillableAgent; host: WorkspaceHost; content: string }> {
  const host = await WorkspaceHost.setUp(t);
  const agent = new KillableAgent(t, host);
  host.store.order(anOrder("a"));
  agent.start();
  await isReady(host, "a");
  const content = host.layout.content("a");
  mkdirSync(join(content, "tree"));
  growTree(join(content, "tree"), 7, 60);
  writeFileSync(join(content, "large"), randomBytes(CONTENT_BYTES));
  return { agent, host, content };
}

async function isReady(host: WorkspaceHost, id: string): Promise<void> {
  await until(`${id} is ready`, () => host.store.reports.get(id)?.stage === ContentStage.READY);
}

async function isStored(host: WorkspaceHost): Promise<Archive> {
  await until("it is stored", () => host.store.transfer("a", "final")?.state === TransferState.DONE);
  return host.store.transfer("a", "final")?.archive ?? assert.fail();
}

function archiveFiles(host: WorkspaceHost): readonly string[] {
  return existsSync(host.layout.archives("a")) ? readdirSync(host.layout.archives("a")) : [];
}

/** Returns the programs of one host's workspaces, because other tests run the same programs. */
function programsOf(name: string, { layout }: WorkspaceHost): readonly number[] {
  // A mount table has the path inside of a file system, which may be mounted below /tmp.
  const directory = basename(dirname(layout.root));
  return readdirSync("/proc")
    .filter((pid) => /^\d+$/.test(pid))
    .filter((pid) => {
      try {
        const words = readFileSync(`/proc/${pid}/cmdline`, "latin1").split("\0");
        // The mount table may be long, and the program lives only for some hundred milliseconds, so only few tables are
        // read.
        return words[0] === name && readFileSync(`/proc/${pid}/mountinfo`, "latin1").includes(directory);
      } catch {
        return false;
      }
    })
    .map(Number);
}

/** Kills a program of the pipeline once. */
async function killProgram(name: string, { host }: KillableAgent): Promise<void> {
  await until(`${name} runs`, () => {
    const [pid] = programsOf(name, host);
    if (pid === undefined) return false;
    try {
      process.kill(pid, "SIGKILL");
      return true;
    } catch {
      return false;
    }
  });
}

type Crash = (agent: KillableAgent) => Promise<void>;

const BACKUP_CRASHES: readonly (readonly [string, Crash])[] = [
  [
    "the agent while it makes the archive",
    (agent) =>
      agent.crashWhen("a part is there", () => archiveFiles(agent.host).some((it) => it.endsWith(".part"))),
  ],
  [
    "the agent while it uploads",
    (agent) => {
      const { store } = agent.host;
      const crash = agent.crashWhen("half is sent", () => store.received > CONTENT_BYTES / 2);
      return crash;
    },
  ],
  [
    "the agent after the archive was stored",
    (agent) => agent.crashWhen("the store has it", () => agent.host.store.archives.has(FINAL.object)),
  ],
  ["tar", (agent) => killProgram("tar", agent)],
  ["zstd", (agent) => killProgram("zstd", agent)],
];

for (const [what, crash] of BACKUP_CRASHES) {
  test(`completes a backup after a kill of ${what}`, options, async (t) => {
    const { agent, host, content } = await setUp(t);
    const before = await digestTree(content);
    const crashed = crash(agent);
    host.store.change("a", { transfers: [FINAL] });
    await crashed;
    const restore = await isStored(host);
    host.store.order(anOrder("b", { restore }));
    await isReady(host, "b");

    assert.equal(await digestTree(host.layout.content("b")), before);
    assert.equal(await digestTree(content), before);
    await until("no archive is left", () => archiveFiles(host).length === 0);
  });
}

const RESTORE_CRASHES: readonly (readonly [string, Crash])[] = [
  [
    "the agent while it unpacks",
    (agent) =>
      agent.crashWhen("a file is there", () => existsSync(join(agent.host.layout.unfinished("b"), "large"))),
  ],
  [
    "the agent after the content is complete",
    (agent) => agent.crashWhen("the content is there", () => existsSync(agent.host.layout.content("b"))),
  ],
  ["tar", (agent) => killProgram("tar", agent)],
  ["zstd", (agent) => killProgram("zstd", agent)],
];

test("completes a restore after a kill at any stage", options, async (t) => {
  const { agent, host, content } = await setUp(t);
  const before = await digestTree(content);
  host.store.change("a", { transfers: [FINAL] });
  const restore = await isStored(host);
  for (const [what, crash] of RESTORE_CRASHES) {
    await t.test(`after a kill of ${what}`, options, async () => {
      const crashed = crash(agent);
      host.store.order(anOrder("b", { restore }));
      await crashed;
      await isReady(host, "b");
      assert.equal(await digestTree(host.layout.content("b")), before);

      host.store.change("b", { dispose: true });
      await until("b is gone", () => host.store.reports.get("b")?.stage === ContentStage.DISPOSED);
      host.store.remove("b");
      await until("b is forgotten", () => !existsSync(host.layout.home("b")));
      host.store.reports.delete("b");
    });
  }
});

test("completes the deletion after a kill of the agent", options, async (t) => {
  const { agent, host, content } = await setUp(t);
  // Deleting this many files takes longer than the 20 ms between two checks.
  for (let index = 0; index < MANY_FILES; index++) writeFileSync(join(content, "tree", `many-${index}`), "");
  const crashed = agent.crashWhen(
    "it is being deleted, or already gone",
    () =>
      existsSync(host.layout.discardedOf("a")) ||
      host.store.reports.get("a")?.stage === ContentStage.DISPOSED,
  );
  host.store.change("a", { dispose: true });
  await crashed;
  await until("it is disposed of", () => host.store.reports.get("a")?.stage === ContentStage.DISPOSED);
  // An agent that was killed after its report gets the order again, and stores it until it has disposed of the workspace again.
  const { layout } = host;
  await until("nothing is left", () => !existsSync(layout.discardedOf("a")) && !existsSync(layout.home("a")));
});
