import assert from "node:assert/strict";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import {
  AdmissionLevel,
  WorkspaceConditionBool,
  WorkspacePhase,
  type WorkspaceStatus,
} from "@forage/proto/core";
import { startTestHost, type TestHost } from "../lib/test-host.ts";
import { waitFor } from "../lib/wait-for.ts";
import type { Subscription } from "../system/subscription.ts";
import { joinHost } from "../system/system.ts";
import { WorkspaceScene } from "../system/workspace-scene.ts";

const LIMIT = { timeout: 180_000 };
const { PENDING, CREATING, INITIALIZING, RUNNING, INTERRUPTED, STOPPING, STOPPED } = WorkspacePhase;
const WORKSPACES = ["a", "b", "c"];
const MEBIBYTE = 1024 * 1024;
const CONNECTIONS = 20;
const SUBSCRIBERS_PER_CONNECTION = 50;
/** The number of changes. Together with the notes, their size is several times that of a connection's buffers. */
const CHANGES = 60;
/** Notes in each status of the workspace. */
const NOTES = { first: "x".repeat(4_000), second: "x".repeat(4_000) };

describe("faults of workspaces on real containers", { concurrency: false }, () => {
  let host: TestHost;
  let other: TestHost | undefined;
  let scene: WorkspaceScene;
  /** The digest of each workspace's content. Each test leaves its workspaces stopped, and saved. */
  const digests = new Map<string, string>();

  before(async () => {
    host = await startTestHost();
    scene = await WorkspaceScene.start(host);
  }, LIMIT);
  after(async () => {
    scene?.close();
    await other?.close();
    await host?.close();
  }, LIMIT);

  const id = (workspace: string, number: number): string => scene.instance(workspace, number);
  const all = (number: number): string[] => WORKSPACES.map((workspace) => id(workspace, number));
  const each = <T>(number: number, run: (instance: string) => Promise<T>): Promise<T[]> =>
    Promise.all(all(number).map(run));
  const saved = (status: WorkspaceStatus): void => {
    assert.equal(status.conditions?.failed, "");
    assert.equal(status.conditions?.finalBackupComplete, WorkspaceConditionBool.TRUE);
  };
  const isSame = async (workspace: string, number: number): Promise<void> =>
    assert.equal(await scene.digest(scene.contentOf(id(workspace, number))), digests.get(workspace));
  const stop = async (instance: string): Promise<void> => {
    await scene.calls.stop(instance);
    saved(await scene.calls.reaches(instance, STOPPED));
  };

  test("a start completes after kills of agent and coordinator", LIMIT, async () => {
    const { agent, coordinator } = scene.system;
    await each(1, (instance) => scene.begin(instance));
    await scene.killAt(agent, "the order is on disk", () => scene.exists(id("a", 1), "order"));
    await scene.killAt(coordinator, "the content is there", () =>
      scene.exists(id("b", 1), "volume", "content"),
    );
    await each(1, (instance) => scene.calls.reaches(instance, RUNNING));
    await each(1, (instance) => scene.grow(instance));
    for (const name of WORKSPACES) digests.set(name, await scene.digest(scene.contentOf(id(name, 1))));
  });

  test("backups complete after kills of agent, coordinator and tar at each stage", LIMIT, async () => {
    const { agent, coordinator } = scene.system;
    const [a, b, c] = [id("a", 1), id("b", 1), id("c", 1)];
    const isArchive = (name: string): boolean => name.endsWith(".tar.zst");
    const kills = [
      scene.killAt(agent, "a's archive is being made", () =>
        scene.archivesOf(a).some((name) => name.endsWith(".part")),
      ),
      scene.killProgram("tar", "--create", b),
      scene.killAt(coordinator, "c's archive is being stored", () => scene.archivesOf(c).some(isArchive)),
    ];
    await each(1, (instance) => scene.calls.stop(instance));
    await Promise.all(kills);
    await scene.becomes(
      a,
      "a's backup is confirmed",
      ({ conditions }) => conditions?.finalBackupComplete === 1,
    );
    await Promise.all([scene.restart(agent), scene.restart(coordinator)]);
    for (const status of await each(1, (instance) => scene.calls.reaches(instance, STOPPED))) saved(status);
    await scene.filesDeleted(...all(1));
  });

  test("restores complete after kills of agent, coordinator and tar at each stage", LIMIT, async () => {
    const { agent, coordinator } = scene.system;
    const [a, b, c] = [id("a", 2), id("b", 2), id("c", 2)];
    const kills = [
      scene.killAt(agent, "a is being unpacked", () => scene.exists(a, "volume", "unfinished", "large")),
      scene.killProgram("tar", "--extract", b),
      scene.killAt(coordinator, "c is being restored", () => scene.exists(c, "volume", "unfinished")),
    ];
    await each(2, (instance) => scene.begin(instance));
    await Promise.all(kills);
    await scene.killAt(agent, "a's content is complete", () => scene.exists(a, "volume", "content"));
    await each(2, (instance) => scene.calls.reaches(instance, RUNNING));
    for (const name of WORKSPACES) await isSame(name, 2);
  });

  test("a stop waits while the content store is unreachable, and then full", LIMIT, async () => {
    const a = id("a", 2);
    await scene.storeDisk.writable(false);
    await scene.calls.stop(a);
    await scene.becomes(a, "the store is away", ({ message }) => /can't be stored: EROFS/.test(message));
    scene.storeDisk.fill(8 * MEBIBYTE);
    await scene.storeDisk.writable(true);
    await scene.becomes(a, "the store is full", ({ message }) =>
      /the content store has no space/.test(message),
    );
    const status = await scene.calls.describe(a);
    assert.equal(status?.phase, STOPPING);
    assert.equal(status?.conditions?.finalBackupComplete, WorkspaceConditionBool.FALSE);
    await isSame("a", 2);
    scene.storeDisk.free();
    saved(await scene.calls.reaches(a, STOPPED));
  });

  test("a restore waits for room on its node, and a backup from a full node is saved", LIMIT, async () => {
    const a = id("a", 3);
    await scene.filesDeleted(id("a", 2));
    scene.nodeDisk.fill(2 * MEBIBYTE);
    await scene.begin(a);
    await scene.becomes(a, "the node has no room", ({ message }) => /no space is left/.test(message));
    scene.nodeDisk.free();
    await scene.calls.reaches(a, RUNNING);
    await isSame("a", 3);
    scene.nodeDisk.fill();
    await stop(a);
    scene.nodeDisk.free();
  });

  test("a damaged backup fails the start, and an older one is restored on request", LIMIT, async () => {
    const directory = join(scene.storeDisk.directory);
    const newest = readdirSync(directory, { recursive: true, encoding: "utf8" }).filter((path) =>
      path.includes(id("a", 3)),
    );
    assert.equal(newest.length, 1);
    damage(join(directory, newest[0] ?? ""));
    await scene.begin(id("a", 4));
    const failed = (await scene.calls.reaches(id("a", 4), STOPPED)).conditions?.failed ?? "";
    assert.match(failed, /damaged.*; to restore an older backup, start it with the annotation/);
    await scene.begin(id("a", 5), { "forage.dev/backup-generation": "1" });
    await scene.calls.reaches(id("a", 5), RUNNING);
    await isSame("a", 5);
    await stop(id("a", 5));
  });

  test("a thousand subscribers get each phase in order, beside one that never reads", LIMIT, async () => {
    const [watched, busy] = [id("d", 1), id("e", 1)];
    const [metaId = ""] = watched.split("-");
    const mustMatch = { owner: "", metaId, annotations: {} };
    const [neverReads] = scene.calls.subscribe(1, undefined);
    assert.ok(neverReads);
    neverReads.pause();
    const subscriptions = Array.from({ length: CONNECTIONS }, () =>
      scene.calls.subscribe(SUBSCRIBERS_PER_CONNECTION, mustMatch),
    ).flat();
    const all = (phase: WorkspacePhase): Promise<unknown> => haveAll(subscriptions, watched, phase);
    try {
      await Promise.all([scene.begin(watched), scene.begin(busy, NOTES)]);
      await Promise.all([all(RUNNING), scene.calls.reaches(busy, RUNNING)]);
      const { ADMIT_EVERYONE, ADMIT_OWNER_ONLY } = AdmissionLevel;
      for (let change = 0; change < CHANGES; change++)
        await scene.calls.admit(busy, change % 2 === 0 ? ADMIT_EVERYONE : ADMIT_OWNER_ONLY);
      scene.hold(watched);
      await Promise.all([scene.calls.stop(watched), stop(busy)]);
      await all(STOPPING);
      scene.letGo(watched);
      await all(STOPPED);
      for (const subscription of subscriptions) isWholeLife(subscription, watched);
      assert.equal(neverReads.messages, 0);

      // The newest status of each workspace has replaced those for which its connection had no room.
      neverReads.resume();
      for (const instance of [watched, busy]) await haveAll([neverReads], instance, STOPPED);
      assert.ok(neverReads.messages < CHANGES, `${neverReads.messages} messages for over ${CHANGES} changes`);
      for (const instance of [watched, busy]) assert.equal(neverReads.stoppedOf(instance), 1);
    } finally {
      for (const subscription of [neverReads, ...subscriptions]) subscription.cancel();
    }
  });

  test(
    "a node lost for good is reported, and its last good backup is restored elsewhere, with its age",
    LIMIT,
    async () => {
      const { agent, forage } = scene.system;
      const [lost, next] = [id("b", 2), id("b", 3)];
      writeFileSync(join(scene.contentOf(lost), "unsaved"), "");
      await agent.kill();
      await scene.becomes(lost, "it is interrupted", ({ phase }) => phase === INTERRUPTED);
      const away = await scene.calls.describe(lost);
      assert.match(away?.message ?? "", /node n1 is unavailable: .*; the last backup is of \d{4}-/);
      const { exitCode, stderr } = await forage(["node", "remove", "n1"]);
      assert.equal(exitCode, 0, stderr);
      const { conditions, message } = await scene.calls.reaches(lost, STOPPED);
      assert.match(
        conditions?.failed ?? "",
        /node n1 was removed from the cluster before the content was saved/,
      );
      assert.equal(conditions?.finalBackupComplete, WorkspaceConditionBool.FALSE);
      assert.match(message, /the content was lost with node n1; the last backup is of \d{4}-/);

      other = await startTestHost();
      await scene.begin(next);
      await joinHost(scene.system, other, "n2", { workspaces: { enabled: true } });
      const restored = await scene.calls.reaches(next, RUNNING);
      assert.match(restored.message, /the backup of \d{4}-/);
      const content = join(other.dir, "agent", "workspaces", next, "volume", "content");
      assert.equal(await scene.digest(content), digests.get("b"));
    },
  );
});

/** Waits until each subscriber has the phase as the newest of the workspace. */
async function haveAll(
  subscriptions: readonly Subscription[],
  instance: string,
  phase: WorkspacePhase,
): Promise<void> {
  const isThere = (subscription: Subscription): boolean => subscription.phasesOf(instance).at(-1) === phase;
  await waitFor(() => subscriptions.every(isThere), {
    ...{ what: `all subscribers have phase ${phase} of ${instance}`, limitMs: 60_000 },
    explain: () => {
      const late = subscriptions.filter((subscription) => !isThere(subscription));
      return `${late.length} have not; the first of them has ${late[0]?.phasesOf(instance)}`;
    },
  });
}

/**
 * Asserts that a subscriber has received the phases in order. It may miss a phase that is followed by the next one at
 * once. A slow machine may interrupt a workspace.
 */
function isWholeLife(subscription: Subscription, instance: string): void {
  const phases = subscription
    .phasesOf(instance)
    .filter((phase) => phase !== INTERRUPTED)
    .filter((phase, index, others) => phase !== others[index - 1]);
  const early = [PENDING, CREATING, INITIALIZING].filter((phase) => phases.includes(phase));
  assert.deepEqual(phases, [...early, RUNNING, STOPPING, STOPPED]);
  assert.equal(subscription.stoppedOf(instance), 1);
}

/** Changes a byte in the middle. */
function damage(path: string): void {
  const bytes = readFileSync(path);
  const at = Math.floor(bytes.length / 2);
  bytes.writeUInt8((bytes.readUInt8(at) + 1) % 256, at);
  writeFileSync(path, bytes);
}
