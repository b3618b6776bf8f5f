import assert from "node:assert/strict";
import { test } from "node:test";
import { WorkspaceConditionBool, WorkspacePhase, WorkspaceType } from "@forage/proto/core";
import { PodPhase, PodStatus } from "@forage/proto/forage/agent/v1/agent";
import { ContentStage, TransferState } from "@forage/proto/forage/workspaces/v1/workspaces";
import { CoordinatorError } from "../src/errors.ts";
import type { StoredObject } from "../src/workspaces/content/content-store.ts";
import { MemoryContentStore } from "../src/workspaces/content/memory-content-store.ts";
import { removedPod } from "./support/hollow-agent.ts";
import { until } from "./support/until.ts";
import { FakeWorkspaceNode } from "./support/workspaces/fake-workspace-node.ts";
import { grpcNodeTransport } from "./support/workspaces/grpc-node-transport.ts";
import { aStart, startWorkspaceWorld } from "./support/workspaces/workspace-world.ts";

const LIMIT = { timeout: 180_000 };
const HOUR_MS = 3_600_000;
const ID = "instance-1";

/**
 * A store that survives the coordinator, and whose stored archives can be made temporarily
 * unavailable.
 */
class OutsideStore extends MemoryContentStore {
  isAway = false;
  questions = 0;

  override async stat(object: string): Promise<StoredObject | undefined> {
    const stored = await super.stat(object);
    if (!this.isAway || stored === undefined) return stored;
    this.questions += 1;
    throw new CoordinatorError("UNAVAILABLE", "the store is away");
  }

  override async close(): Promise<void> {}
}

function anOutsideStore(): OutsideStore {
  return new OutsideStore({ nowMs: () => Date.now() });
}

test("continues a workspace when the coordinator restarts at any stage", LIMIT, async (t) => {
  const life = await startWorkspaceWorld(t, { content: anOutsideStore() });
  const { world } = life;
  let { agent, node } = life;
  let version = 0n;
  const restart = async (phase: WorkspacePhase): Promise<void> => {
    const { onStopping } = agent;
    agent.close();
    node.close();
    await world.restart();
    agent = agent.again();
    agent.onStopping = onStopping;
    node = new FakeWorkspaceNode(grpcNodeTransport(world, agent), node);
    await until("the node is back", () => node.orders.has(ID));
    const status = await life.reaches(ID, phase);
    assert.ok(status.statusVersion >= version, "the status version does not go back");
    version = status.statusVersion;
  };

  node.behaviour.initialize = () => undefined;
  await life.calls.startWorkspace(aStart());
  await life.reaches(ID, WorkspacePhase.INITIALIZING);
  await restart(WorkspacePhase.INITIALIZING);
  node.behaviour.initialize = () => ({ stage: ContentStage.READY });
  node.act();
  await life.reaches(ID, WorkspacePhase.RUNNING);
  const lastActivity = async () => (await world.workspaces().describeWorkspace({ id: ID })).lastActivity;
  await world.workspaces().markActive({ id: ID, closed: false });
  const marked = await lastActivity();
  assert.notEqual(marked, "");
  await restart(WorkspacePhase.RUNNING);
  assert.equal(await lastActivity(), marked, "the activity outlives the coordinator");

  agent.onStopping = () => undefined;
  node.behaviour.transfer = () => undefined;
  node.behaviour.dispose = () => false;
  await world.workspaces().stopWorkspace({ id: ID, policy: 0 });
  await until("the pod stops", () => [...agent.assignments.values()].some(({ stopping }) => stopping));
  await restart(WorkspacePhase.STOPPING);
  agent.onStopping = removedPod;
  await restart(WorkspacePhase.STOPPING);
  await until("the final backup is ordered", () => node.orders.get(ID)?.transfers.length === 1);
  await restart(WorkspacePhase.STOPPING);
  node.behaviour.transfer = () => "store";
  node.act();
  await until("the deletion is ordered", () => node.orders.get(ID)?.dispose === true);
  await restart(WorkspacePhase.STOPPING);
  node.behaviour.dispose = () => true;
  node.act();
  const stopped = await life.reaches(ID, WorkspacePhase.STOPPED);
  assert.equal(stopped.conditions?.finalBackupComplete, WorkspaceConditionBool.TRUE);
  assert.equal(stopped.conditions?.failed, "");
  await restart(WorkspacePhase.STOPPED);
});

test(
  "makes no backup when it is stopped during a restore, and restores the same backup at the next start",
  LIMIT,
  async (t) => {
    const life = await startWorkspaceWorld(t, { content: anOutsideStore() });
    const { world } = life;
    await life.calls.startWorkspace(aStart());
    await life.reaches(ID, WorkspacePhase.RUNNING);
    await life.calls.stopWorkspace({ id: ID, policy: 0 });
    await life.reaches(ID, WorkspacePhase.STOPPED);

    const sources: (string | undefined)[] = [];
    life.node.behaviour.initialize = ({ restore: source }) => {
      sources.push(source?.object);
      return undefined;
    };
    await life.calls.startWorkspace(aStart({ id: "instance-2" }));
    await life.reaches("instance-2", WorkspacePhase.INITIALIZING);
    const restore = life.node.orders.get("instance-2")?.restore;
    life.agent.close();
    life.node.close();
    await world.restart();
    const node = new FakeWorkspaceNode(grpcNodeTransport(world, life.agent.again()), life.node);
    await until("the node is back", () => node.orders.has("instance-2"));
    const calls = world.workspaces();
    await calls.stopWorkspace({ id: "instance-2", policy: 0 });
    const stopped = await life.reaches("instance-2", WorkspacePhase.STOPPED);
    assert.equal(stopped.conditions?.finalBackupComplete, WorkspaceConditionBool.FALSE);
    // A restarted agent fills the content by the last order.
    assert.deepEqual(new Set(sources), new Set([restore?.object]));

    await calls.startWorkspace(aStart({ id: "instance-3" }));
    await until("the third order", () => node.orders.has("instance-3"));
    assert.notEqual(restore, undefined);
    assert.deepEqual(node.orders.get("instance-3")?.restore, restore);
  },
);

test(
  "reports the loss of content on a node without its former disk, and restores the backup at the next start",
  LIMIT,
  async (t) => {
    const { calls, world, agent, node, reaches } = await startWorkspaceWorld(t);
    await calls.startWorkspace(aStart());
    await reaches(ID, WorkspacePhase.RUNNING);
    await calls.backupWorkspace({ id: ID });
    const backups = node.orders.get(ID)?.transfers.length ?? 0;
    node.close();
    const emptied = new FakeWorkspaceNode(grpcNodeTransport(world, agent));
    const lost = await reaches(ID, WorkspacePhase.STOPPED);
    assert.match(lost.conditions?.failed ?? "", /node n1 has lost the content; the last backup is of \d{4}-/);
    assert.equal(lost.conditions?.finalBackupComplete, WorkspaceConditionBool.FALSE);
    assert.equal(backups, 0);
    await calls.startWorkspace(aStart({ id: "instance-2" }));
    await reaches("instance-2", WorkspacePhase.RUNNING);
    assert.match(emptied.orders.get("instance-2")?.restore?.object ?? "", /backup-1/);
  },
);

test("fails a start whose backup can't be restored, and names the way to an older one", LIMIT, async (t) => {
  const { calls, node, reaches } = await startWorkspaceWorld(t);
  for (const id of ["older", "newer"]) {
    await calls.startWorkspace(aStart({ id }));
    await reaches(id, WorkspacePhase.RUNNING);
    await calls.stopWorkspace({ id, policy: 0 });
    await reaches(id, WorkspacePhase.STOPPED);
  }
  node.behaviour.initialize = ({ restore }) =>
    /newer/.test(restore?.object ?? "")
      ? { stage: ContentStage.FAILED, message: `archive ${restore?.object} is damaged` }
      : { stage: ContentStage.READY };
  await calls.startWorkspace(aStart());
  const failed = await reaches(ID, WorkspacePhase.STOPPED);
  assert.match(
    failed.conditions?.failed ?? "",
    /is damaged; to restore an older backup, start it with the annotation forage.dev\/backup-generation/,
  );
  const annotations = { "forage.dev/backup-generation": "1" };
  await calls.startWorkspace(aStart({ id: "instance-2", metadata: { annotations } }));
  await reaches("instance-2", WorkspacePhase.RUNNING);
  assert.match(node.orders.get("instance-2")?.restore?.object ?? "", /older/);
});

test("confirms a stored archive only after the store has it", LIMIT, async (t) => {
  const content = anOutsideStore();
  const { calls, node, world, reaches } = await startWorkspaceWorld(t, { content });
  await calls.startWorkspace(aStart());
  await reaches(ID, WorkspacePhase.RUNNING);
  content.isAway = true;
  await calls.stopWorkspace({ id: ID, policy: 0 });
  await until("the store is asked", () => content.questions > 0);
  const { status } = await calls.describeWorkspace({ id: ID });
  assert.equal(status?.phase, WorkspacePhase.STOPPING);
  assert.equal(status.conditions?.finalBackupComplete, WorkspaceConditionBool.FALSE);
  assert.equal(node.orders.get(ID)?.dispose, false);
  content.isAway = false;
  world.clock.skip(5_000);
  const stopped = await reaches(ID, WorkspacePhase.STOPPED);
  assert.equal(stopped.conditions?.finalBackupComplete, WorkspaceConditionBool.TRUE);
});

test(
  "reports a stop beyond its limits as a failure, and continues until the content is saved",
  LIMIT,
  async (t) => {
    const { calls, agent, node, world, reaches } = await startWorkspaceWorld(t);
    const failedOf = async (id: string): Promise<string> =>
      (await calls.describeWorkspace({ id })).status?.conditions?.failed ?? "";
    for (const id of ["pod", "content"]) {
      await calls.startWorkspace(aStart({ id, metadata: { metaId: id } }));
      await reaches(id, WorkspacePhase.RUNNING);
    }
    node.behaviour.transfer = () => ({ state: TransferState.RETRYING, message: "the store is full" });
    await calls.stopWorkspace({ id: "content", policy: 0 });
    await until("the backup is tried", () => node.held.get("content")?.transfers.size === 1);
    agent.onStopping = () => undefined;
    await calls.stopWorkspace({ id: "pod", policy: 0 });
    await reaches("pod", WorkspacePhase.STOPPING);
    world.clock.skip(HOUR_MS + 1_000);
    await until(
      "both have failed",
      async () => (await failedOf("pod")) !== "" && (await failedOf("content")) !== "",
    );
    assert.match(await failedOf("pod"), /the pod did not stop in time on node n1/);
    assert.match(await failedOf("content"), /the final backup did not complete in time: the store is full/);
    assert.equal(node.orders.get("content")?.dispose, false);

    node.behaviour.transfer = () => "store";
    node.act();
    agent.onStopping = removedPod;
    for (const pod of agent.assignments.values()) agent.report(removedPod(pod));
    for (const id of ["pod", "content"]) {
      const stopped = await reaches(id, WorkspacePhase.STOPPED);
      assert.equal(stopped.conditions?.finalBackupComplete, WorkspaceConditionBool.TRUE, id);
    }
  },
);

test("ends an image build with its container, and saves nothing", LIMIT, async (t) => {
  const { calls, agent, node, reaches } = await startWorkspaceWorld(t);
  for (const [id, exitCode] of [
    ["well", 0],
    ["badly", 2],
  ] as const) {
    await calls.startWorkspace(aStart({ id, type: WorkspaceType.IMAGEBUILD, metadata: { metaId: id } }));
    const running = await reaches(id, WorkspacePhase.RUNNING);
    assert.equal(running.spec?.headless, true);
    await assert.doesNotReject(calls.describeWorkspace({ id }));
    const pod = [...agent.assignments.values()].find(({ workloadName }) => workloadName === id);
    const { uid = "", namespace = "", name = "", specHash = "" } = pod ?? {};
    const phase = exitCode === 0 ? PodPhase.SUCCEEDED : PodPhase.FAILED;
    const terminated = { exitCode, reason: "", message: "no space" };
    const containers = [{ name: "workspace", state: { $case: "terminated", value: terminated } }] as const;
    agent.report(
      PodStatus.fromPartial({ uid, namespace, name, specHash, phase, containers: [...containers] }),
    );
    const { conditions } = await reaches(id, WorkspacePhase.STOPPED);
    assert.equal(conditions?.failed, "");
    assert.match(conditions?.headlessTaskFailed ?? "", exitCode === 0 ? /^$/ : /exit code 2: no space/);
    assert.equal(conditions?.finalBackupComplete, WorkspaceConditionBool.FALSE);
    assert.equal(conditions?.snapshot, "");
    assert.equal(node.held.get(id)?.transfers.size, 0);
  }
});

test("stops no workspace when the wall clock is set by days in either direction", LIMIT, async (t) => {
  const { calls, world, reaches } = await startWorkspaceWorld(t);
  await calls.startWorkspace(aStart());
  await reaches(ID, WorkspacePhase.RUNNING);
  for (const days of [2, -3]) {
    await calls.markActive({ id: ID, closed: false });
    world.clock.setWall(days * 24 * HOUR_MS);
    // Timers that are due in this time run now.
    world.clock.skip(60_000);
    await calls.setTimeout({ id: ID, duration: `${40 + days}m` });
    assert.equal((await reaches(ID, WorkspacePhase.RUNNING)).conditions?.timeout, "");
  }
  world.clock.skip(38 * 60_000);
  assert.match((await reaches(ID, WorkspacePhase.STOPPED)).conditions?.timeout ?? "", /period of inactivity/);
});
