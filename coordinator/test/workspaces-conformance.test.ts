import assert from "node:assert/strict";
import { test } from "node:test";
import {
  AdmissionLevel,
  PortVisibility,
  type StartWorkspaceRequest,
  type SubscribeResponse,
  WorkspaceConditionBool,
  WorkspaceFeatureFlag,
  WorkspacePhase,
  WorkspaceType,
} from "@forage/proto/core";
import { PodPhase, PodStatus } from "@forage/proto/forage/agent/v1/agent";
import { ContentStage, TransferState } from "@forage/proto/forage/workspaces/v1/workspaces";
import { status } from "@grpc/grpc-js";
import { HollowAgent } from "./support/hollow-agent.ts";
import { until } from "./support/until.ts";
import { FakeWorkspaceNode } from "./support/workspaces/fake-workspace-node.ts";
import { grpcNodeTransport } from "./support/workspaces/grpc-node-transport.ts";
import { aStart, startWorkspaceWorld } from "./support/workspaces/workspace-world.ts";

const LIMIT = { timeout: 180_000 };
const SSH_KEY = `ssh-ed25519 ${"A".repeat(68)} someone@example`;

function startWith(change: (request: StartWorkspaceRequest) => void, id = "bad"): StartWorkspaceRequest {
  const request = aStart({ id });
  change(request);
  return request;
}

test("reports every violation of StartWorkspace at once", LIMIT, async (t) => {
  const { calls } = await startWorkspaceWorld(t);
  const request = startWith((it) => {
    it.id = "Not A Label";
    it.servicePrefix = "";
    it.metadata = undefined;
    if (it.spec === undefined) return;
    it.spec.workspaceImage = "";
    it.spec.workspaceLocation = "";
    it.spec.initializer = undefined;
    it.spec.timeout = "soon";
    it.spec.class = "huge";
    it.spec.ports = [1, 2].map(() => ({ port: 8080, visibility: PortVisibility.PRIVATE, url: "" }));
  });
  await assert.rejects(calls.startWorkspace(request), ({ code, metadata }) => {
    assert.equal(code, status.INVALID_ARGUMENT);
    const details = String(metadata.get("grpc-status-details-bin")[0]);
    for (const field of [
      "id",
      "service_prefix",
      "metadata",
      "spec.workspace_image",
      "spec.workspace_location",
    ])
      assert.ok(details.includes(field), field);
    for (const field of ["spec.initializer", "spec.timeout", "spec.class", "spec.ports[1].port"])
      assert.ok(details.includes(field), field);
    return true;
  });
  const refused: readonly [string, (request: StartWorkspaceRequest) => void, number][] = [
    ["no spec", (it) => (it.spec = undefined), status.INVALID_ARGUMENT],
    ["an unknown type", (it) => (it.type = 3 as WorkspaceType), status.INVALID_ARGUMENT],
    [
      "a volume claim",
      (it) => it.spec?.featureFlags.push(WorkspaceFeatureFlag.PERSISTENT_VOLUME_CLAIM),
      status.FAILED_PRECONDITION,
    ],
    [
      "an unknown snapshot",
      (it) => {
        const value = { snapshot: "a/b/c.tar.zst@memory", fromVolumeSnapshot: false };
        if (it.spec !== undefined) it.spec.initializer = { spec: { $case: "snapshot", value } };
      },
      status.FAILED_PRECONDITION,
    ],
  ];
  for (const [what, change, code] of refused)
    await assert.rejects(calls.startWorkspace(startWith(change)), { code }, what);
});

test(
  "allows one live instance of an id and a meta id, and answers NOT_FOUND for unknown ids in every method",
  LIMIT,
  async (t) => {
    const { calls, world, reaches } = await startWorkspaceWorld(t);
    await calls.startWorkspace(aStart());
    await assert.rejects(calls.startWorkspace(aStart({ servicePrefix: "other" })), {
      code: status.ALREADY_EXISTS,
    });
    await assert.rejects(calls.startWorkspace(aStart({ id: "instance-2" })), { code: status.ALREADY_EXISTS });
    await reaches("instance-1", WorkspacePhase.RUNNING);
    const id = "unknown";
    const spec = { port: 8080, visibility: PortVisibility.PUBLIC, url: "" };
    const unknown = [
      calls.stopWorkspace({ id, policy: 0 }),
      calls.describeWorkspace({ id }),
      calls.backupWorkspace({ id }),
      calls.markActive({ id, closed: false }),
      calls.setTimeout({ id, duration: "1h" }),
      calls.controlPort({ id, expose: true, spec }),
      calls.takeSnapshot({ id, returnImmediately: true }),
      calls.controlAdmission({ id, level: AdmissionLevel.ADMIT_EVERYONE }),
      calls.updateSshKey({ id, keys: [SSH_KEY] }),
    ];
    for (const call of unknown) await assert.rejects(call, { code: status.NOT_FOUND });
    assert.deepEqual(await calls.deleteVolumeSnapshot({ id, volumeHandle: "", softDelete: true }), {
      wasDeleted: false,
    });
    assert.deepEqual(await calls.describeCluster({}), {
      WorkspaceClasses: [{ Id: "default", DisplayName: "default" }],
    });

    const viewer = world.workspaces(await world.token("viewer", ["workspaces"]));
    assert.equal((await viewer.describeWorkspace({ id: "instance-1" })).status?.auth?.ownerToken, "");
    await assert.rejects(viewer.stopWorkspace({ id: "instance-1", policy: 0 }), {
      code: status.PERMISSION_DENIED,
    });
    const stranger = world.workspaces(await world.token("admin", ["other"]));
    await assert.rejects(stranger.getWorkspaces({ mustMatch: undefined }), {
      code: status.PERMISSION_DENIED,
    });
  },
);

test("changes the status by controls, and refuses invalid arguments", LIMIT, async (t) => {
  const { calls, reaches } = await startWorkspaceWorld(t);
  const id = "instance-1";
  await calls.startWorkspace(aStart({ metadata: { annotations: { a: "1", b: "2" } } }));
  await reaches(id, WorkspacePhase.RUNNING);
  await calls.controlPort({
    id,
    expose: true,
    spec: { port: 8080, visibility: PortVisibility.PUBLIC, url: "" },
  });
  await calls.controlAdmission({ id, level: AdmissionLevel.ADMIT_EVERYONE });
  await calls.setTimeout({ id, duration: "1h30m" });
  await calls.updateSshKey({ id, keys: [SSH_KEY] });
  assert.equal((await calls.describeWorkspace({ id })).lastActivity, "");
  await calls.markActive({ id, closed: false });
  const { status: changed, lastActivity } = await calls.describeWorkspace({ id });
  assert.match(lastActivity, /^\d{4}-.*Z$/);
  assert.equal(changed?.auth?.admission, AdmissionLevel.ADMIT_EVERYONE);
  assert.equal(changed?.spec?.timeout, "1h30m");
  assert.notEqual(changed?.conditions?.firstUserActivity, undefined);
  const url = "https://8080-prefix-1.ws.example.test";
  assert.deepEqual(changed?.spec?.exposedPorts, [{ port: 8080, visibility: PortVisibility.PUBLIC, url }]);
  await calls.controlPort({ id, expose: false, spec: { port: 8080, visibility: 0, url: "" } });
  await calls.controlPort({ id, expose: false, spec: { port: 8080, visibility: 0, url: "" } });
  assert.deepEqual((await calls.describeWorkspace({ id })).status?.spec?.exposedPorts, []);
  const invalid = [
    calls.setTimeout({ id, duration: "tomorrow" }),
    calls.setTimeout({ id, duration: "-1h" }),
    calls.controlPort({ id, expose: true, spec: undefined }),
    calls.controlAdmission({ id, level: 9 as AdmissionLevel }),
    calls.updateSshKey({ id, keys: [] }),
    calls.updateSshKey({ id: "", keys: [SSH_KEY] }),
    calls.stopWorkspace({ id, policy: 2 as 0 }),
    calls.deleteVolumeSnapshot({ id: "", volumeHandle: "", softDelete: false }),
  ];
  for (const call of invalid) await assert.rejects(call, { code: status.INVALID_ARGUMENT });
  const found = async (filter: { owner?: string; metaId?: string; annotations?: Record<string, string> }) => {
    const mustMatch = { owner: "", metaId: "", annotations: {}, ...filter };
    return (await calls.getWorkspaces({ mustMatch })).status.length;
  };
  assert.equal(await found({}), 1);
  assert.equal(await found({ owner: "owner-1", metaId: "meta-1", annotations: { a: "1" } }), 1);
  assert.equal(await found({ owner: "other" }), 0);
  assert.equal(await found({ metaId: "other" }), 0);
  assert.equal(await found({ annotations: { a: "2" } }), 0);
});

test("returns URLs of snapshots and backups that the next start accepts", LIMIT, async (t) => {
  const { calls, node, reaches } = await startWorkspaceWorld(t);
  const id = "instance-1";
  node.behaviour.initialize = () => undefined;
  await calls.startWorkspace(aStart());
  await reaches(id, WorkspacePhase.INITIALIZING);
  await assert.rejects(calls.takeSnapshot({ id, returnImmediately: true }), {
    code: status.FAILED_PRECONDITION,
  });
  await assert.rejects(calls.backupWorkspace({ id }), { code: status.FAILED_PRECONDITION });
  node.behaviour.initialize = () => ({ stage: ContentStage.READY });
  node.act();
  await reaches(id, WorkspacePhase.RUNNING);
  const atOnce = await calls.takeSnapshot({ id, returnImmediately: true });
  const waited = await calls.takeSnapshot({ id, returnImmediately: false });
  assert.notEqual(atOnce.url, waited.url);
  assert.match((await calls.backupWorkspace({ id })).url, /backup-3\.tar\.zst@memory$/);
  node.behaviour.transfer = () => ({ state: TransferState.FAILED, message: "no such directory" });
  await assert.rejects(calls.backupWorkspace({ id }), { code: status.DATA_LOSS });
  const initializer = { spec: { $case: "snapshot", value: { snapshot: waited.url } } } as const;
  await calls.startWorkspace(
    aStart({ id: "instance-2", metadata: { metaId: "meta-2" }, spec: { initializer } }),
  );
  await until(
    "the order with the snapshot",
    () => node.orders.get("instance-2")?.archives[waited.url] !== undefined,
  );
});

test(
  "sends a new subscriber the present state, then every change in order, and STOPPED once",
  LIMIT,
  async (t) => {
    const { calls, reaches } = await startWorkspaceWorld(t);
    await calls.startWorkspace(aStart());
    await reaches("instance-1", WorkspacePhase.RUNNING);
    const stream = calls.subscribe({ mustMatch: { owner: "owner-1", metaId: "", annotations: {} } });
    const received: SubscribeResponse[] = [];
    stream.on("data", (response: SubscribeResponse) => received.push(response));
    stream.on("error", () => {});
    await until("the present state", () => received.length > 0);
    assert.deepEqual(received[0]?.header, { "forage-snapshot": "true", "forage-snapshot-remaining": "0" });
    await calls.startWorkspace(aStart({ id: "other", metadata: { owner: "owner-2", metaId: "meta-2" } }));
    await calls.stopWorkspace({ id: "instance-1", policy: 1 });
    await reaches("instance-1", WorkspacePhase.STOPPED);
    await until("STOPPED", () => received.at(-1)?.status?.phase === WorkspacePhase.STOPPED);
    await reaches("other", WorkspacePhase.RUNNING);
    const versions = received.map((it) => it.status?.statusVersion ?? 0n);
    assert.deepEqual(
      versions,
      [...versions].sort((a, b) => (a < b ? -1 : 1)),
    );
    assert.equal(new Set(versions).size, versions.length);
    assert.equal(received.filter((it) => it.status?.phase === WorkspacePhase.STOPPED).length, 1);
    assert.ok(received.every((it) => it.status?.id === "instance-1"));
    stream.cancel();
  },
);

test("stops a workspace with its condition after failures, time-outs and exits", LIMIT, async (t) => {
  const { calls, node, agent, world, reaches } = await startWorkspaceWorld(t);
  node.behaviour.initialize = ({ metaId }) =>
    metaId === "broken"
      ? { stage: ContentStage.FAILED, message: "no such repository" }
      : { stage: ContentStage.READY };
  const start = (id: string, type: WorkspaceType = WorkspaceType.REGULAR) =>
    calls.startWorkspace(aStart({ id, type, metadata: { metaId: id } }));
  await start("broken");
  const broken = await reaches("broken", WorkspacePhase.STOPPED);
  assert.match(broken.conditions?.failed ?? "", /content initialization failed: no such repository/);
  assert.equal(broken.conditions?.finalBackupComplete, WorkspaceConditionBool.FALSE);

  const ended = (id: string, exitCode: number): void => {
    const [pod] = [...agent.assignments.values()].filter(({ workloadName }) => workloadName === id);
    const { uid = "", namespace = "", name = "", specHash = "" } = pod ?? {};
    const phase = exitCode === 0 ? PodPhase.SUCCEEDED : PodPhase.FAILED;
    const terminated = { exitCode, reason: "", message: "last words" };
    const containers = [{ name: "workspace", state: { $case: "terminated", value: terminated } }] as const;
    agent.report(
      PodStatus.fromPartial({ uid, namespace, name, specHash, phase, containers: [...containers] }),
    );
  };
  await start("exits");
  await reaches("exits", WorkspacePhase.RUNNING);
  ended("exits", 0);
  const exited = await reaches("exits", WorkspacePhase.STOPPED);
  assert.match(exited.conditions?.failed ?? "", /not supposed to do that/);
  assert.equal(exited.conditions?.finalBackupComplete, WorkspaceConditionBool.TRUE);

  await start("prebuild", WorkspaceType.PREBUILD);
  await reaches("prebuild", WorkspacePhase.RUNNING);
  ended("prebuild", 3);
  const prebuilt = await reaches("prebuild", WorkspacePhase.STOPPED);
  assert.equal(prebuilt.conditions?.failed, "");
  assert.match(prebuilt.conditions?.headlessTaskFailed ?? "", /exit code 3: last words/);
  assert.match(prebuilt.conditions?.snapshot ?? "", /@memory$/);

  await start("idle");
  await reaches("idle", WorkspacePhase.RUNNING);
  await calls.markActive({ id: "idle", closed: false });
  world.clock.skip(31 * 60_000);
  const idle = await reaches("idle", WorkspacePhase.STOPPED);
  assert.equal(
    idle.conditions?.timeout,
    "workspace timed out after period of inactivity (00h31m) took longer than 00h30m",
  );
  assert.equal(idle.conditions?.failed, "");
  assert.equal(idle.conditions?.finalBackupComplete, WorkspaceConditionBool.TRUE);
});

test("keeps content on its node that can't be stored, with the reason in the message", LIMIT, async (t) => {
  const { calls, node, world, reaches } = await startWorkspaceWorld(t);
  node.behaviour.transfer = () => ({
    state: TransferState.RETRYING,
    message: "the disk of the store is full",
  });
  await calls.startWorkspace(aStart());
  const running = await reaches("instance-1", WorkspacePhase.RUNNING);
  await calls.stopWorkspace({ id: "instance-1", policy: 0 });
  await until("the reason is in the message", async () => {
    const { status: stopping } = await calls.describeWorkspace({ id: "instance-1" });
    return (
      stopping?.phase === WorkspacePhase.STOPPING && /the disk of the store is full/.test(stopping.message)
    );
  });
  assert.equal(node.orders.get("instance-1")?.dispose, false);
  node.behaviour.transfer = () => "store";
  node.act();
  const stopped = await reaches("instance-1", WorkspacePhase.STOPPED);
  assert.ok(stopped.statusVersion > running.statusVersion);
  assert.equal(stopped.message, "");
  world.clock.skip(601_000);
  await until("the record goes", () => node.removals.includes("instance-1"));
  await assert.rejects(calls.describeWorkspace({ id: "instance-1" }), { code: status.NOT_FOUND });
});

test("reports a removed node as a loss, and restores the last backup at the next start", LIMIT, async (t) => {
  const { calls, node, agent, world, content, reaches } = await startWorkspaceWorld(t);
  await calls.startWorkspace(aStart());
  await reaches("instance-1", WorkspacePhase.RUNNING);
  const { url } = await calls.backupWorkspace({ id: "instance-1" });
  node.close();
  agent.close();
  await world.operator().forgetNode({ name: "n1", force: true });
  const lost = await reaches("instance-1", WorkspacePhase.STOPPED);
  assert.match(lost.conditions?.failed ?? "", /n1 was removed from the cluster before the content was saved/);
  assert.equal(lost.conditions?.finalBackupComplete, WorkspaceConditionBool.FALSE);
  assert.match(lost.message, /the content was lost with node n1; the last backup is of \d{4}-/);

  const other = await HollowAgent.start(world, {
    name: "n2",
    tokenLabels: { "forage.dev/workspaces": "true" },
  });
  const otherNode = new FakeWorkspaceNode(grpcNodeTransport(world, other));
  await calls.startWorkspace(aStart({ id: "instance-2" }));
  const running = await reaches("instance-2", WorkspacePhase.RUNNING);
  assert.equal(`${otherNode.orders.get("instance-2")?.restore?.object}@${content.name}`, url);
  assert.match(running.message, /^restored from the backup of \d{4}-/);
  const generation = { metadata: { annotations: { "forage.dev/backup-generation": "7" } } };
  await assert.rejects(
    calls.startWorkspace(
      aStart({ id: "instance-3", metadata: { metaId: "meta-3", ...generation.metadata } }),
    ),
    {
      code: status.INVALID_ARGUMENT,
    },
  );
});

test("runs fifty workspaces that start concurrently, and stops all with a backup", LIMIT, async (t) => {
  const classes = [{ id: "tiny", cpu: "1m", memory: "1Mi" }];
  const { calls } = await startWorkspaceWorld(t, { settings: { classes } });
  const ids = Array.from({ length: 50 }, (_, index) => `many-${index}`);
  await Promise.all(ids.map((id) => calls.startWorkspace(aStart({ id, metadata: { metaId: id } }))));
  const all = async (phase: WorkspacePhase): Promise<boolean> =>
    (await calls.getWorkspaces({ mustMatch: undefined })).status.every((it) => it.phase === phase);
  await until("all run", () => all(WorkspacePhase.RUNNING), 30_000);
  await Promise.all(ids.map((id) => calls.stopWorkspace({ id, policy: 0 })));
  await until("all have stopped", () => all(WorkspacePhase.STOPPED), 30_000);
  const { status: stopped } = await calls.getWorkspaces({ mustMatch: undefined });
  assert.equal(stopped.length, 50);
  assert.ok(stopped.every((it) => it.conditions?.finalBackupComplete === WorkspaceConditionBool.TRUE));
});
