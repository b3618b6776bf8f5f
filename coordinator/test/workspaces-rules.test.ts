import assert from "node:assert/strict";
import { test } from "node:test";
import { WorkspaceConditionBool, WorkspacePhase, WorkspaceType } from "@forage/proto/core";
import { status } from "@grpc/grpc-js";
import { MAX_OPEN_TRANSFERS } from "../src/workspaces/rpc/transfers.ts";
import { MAX_PORTS } from "../src/workspaces/start/validate.ts";
import { until } from "./support/until.ts";
import { aStart, startWorkspaceWorld } from "./support/workspaces/workspace-world.ts";

const LIMIT = { timeout: 180_000 };

test("answers a new image build with an equal running one", LIMIT, async (t) => {
  const { calls, reaches } = await startWorkspaceWorld(t);
  const build = (id: string, annotations: Record<string, string>, image = "registry.example/builder:1") =>
    calls.startWorkspace(
      aStart({
        id,
        type: WorkspaceType.IMAGEBUILD,
        metadata: { metaId: "build", annotations },
        spec: { workspaceImage: image },
      }),
    );
  const references = { baseref: "registry.example/base:1", ref: "registry.example/target:1" };
  const first = await build("build-1", references);
  assert.deepEqual(await build("build-2", references), first);
  await assert.rejects(calls.describeWorkspace({ id: "build-2" }), { code: status.NOT_FOUND });
  const others = [
    build("build-3", { ...references, ref: "registry.example/target:2" }),
    build("build-4", references, "registry.example/builder:2"),
  ];
  for (const other of others) await assert.rejects(other, { code: status.ALREADY_EXISTS });
  await calls.stopWorkspace({ id: "build-1", policy: 1 });
  await reaches("build-1", WorkspacePhase.STOPPED);
  assert.notDeepEqual(await build("build-2", references), first);
});

test(
  "marks a workspace as INTERRUPTED while its node is away, and as RUNNING afterwards",
  LIMIT,
  async (t) => {
    const { calls, agent, reaches } = await startWorkspaceWorld(t, { heartbeatSeconds: 0.5 });
    const id = "instance-1";
    await calls.startWorkspace(aStart());
    await reaches(id, WorkspacePhase.RUNNING);
    agent.close();
    const away = await reaches(id, WorkspacePhase.INTERRUPTED);
    assert.equal(away.conditions?.networkNotReady, WorkspaceConditionBool.TRUE);
    assert.match(away.message, /node n1 is unavailable/);
    agent.again();
    const again = await reaches(id, WorkspacePhase.RUNNING);
    assert.equal(again.conditions?.networkNotReady, WorkspaceConditionBool.FALSE);
    assert.ok(again.statusVersion > away.statusVersion);
  },
);

test("counts workspaces against the quota of the namespace", LIMIT, async (t) => {
  const { calls, world, reaches } = await startWorkspaceWorld(t);
  const operator = world.operator();
  const limit = (limits: Record<string, string>) =>
    operator.setNamespaceQuota({ namespace: "workspaces", limits, reset: true });
  const start = (id: string) => calls.startWorkspace(aStart({ id, metadata: { metaId: id } }));
  const refused = (field: string) => (error: { code: number; message: string }) => {
    assert.equal(error.code, status.INVALID_ARGUMENT);
    assert.ok(error.message.includes(`${field}: exceeds the quota of namespace "workspaces"`), error.message);
    return true;
  };
  await limit({ pods: "2" });
  // None has a pod yet, so only the number of pending starts refuses the third one.
  const results = await Promise.allSettled(["w1", "w2", "w3"].map(start));
  assert.equal(results.filter(({ status: it }) => it === "rejected").length, 1);
  await assert.rejects(start("w4"), refused("id"));
  for (const { status: live } of [await calls.getWorkspaces({ mustMatch: undefined })])
    for (const { id } of live) await reaches(id, WorkspacePhase.RUNNING);
  await assert.rejects(start("w4"), refused("id"));
  await limit({ cpu: "2" });
  await assert.rejects(start("w4"), refused("spec.class"));
  await until("the usage shows the workspaces", async () => {
    const { namespaces } = await operator.listNamespaces({ namespace: "" });
    return namespaces.find(({ name }) => name === "workspaces")?.used.pods === "2";
  });
  await limit({ cpu: "3" });
  await start("w4");
});

test("refuses remotes with unsupported protocols with their field", LIMIT, async (t) => {
  const { calls } = await startWorkspaceWorld(t);
  for (const uri of ["ssh://git@example.org/a.git", "git@example.org:a.git", "git://example.org/a.git", ""]) {
    const value = { remoteUri: uri, upstreamRemoteUri: "", config: {} };
    const parts = { initializer: { spec: { $case: "git", value } } } as const;
    await assert.rejects(calls.startWorkspace(aStart({ spec: parts })), (error: Error) => {
      assert.match(error.message, /spec\.initializer\.git\.remote_uri: must be an http or https URL/);
      return true;
    });
  }
});

test("keeps the size limit of an instance, and applies a changed one to the next", LIMIT, async (t) => {
  const classes = [{ id: "small", diskGigabytes: 2 }];
  const { calls, node, settings, reaches } = await startWorkspaceWorld(t, { settings: { classes } });
  const limitOf = (id: string) => node.orders.get(id)?.quotaBytes;
  await calls.startWorkspace(aStart());
  await reaches("instance-1", WorkspacePhase.RUNNING);
  settings.classes[0] = { ...(settings.classes[0] ?? assert.fail()), diskGigabytes: 5 };
  await calls.stopWorkspace({ id: "instance-1", policy: 0 });
  await reaches("instance-1", WorkspacePhase.STOPPED);
  assert.equal(limitOf("instance-1"), 2n * 1024n ** 3n);
  await calls.startWorkspace(aStart({ id: "instance-2" }));
  await reaches("instance-2", WorkspacePhase.RUNNING);
  assert.equal(limitOf("instance-2"), 5n * 1024n ** 3n);
});

test("refuses a start beyond workspaces.maxInstances until another one has stopped", LIMIT, async (t) => {
  const { calls, reaches } = await startWorkspaceWorld(t, { settings: { maxInstances: 1 } });
  const second = aStart({ id: "instance-2", metadata: { metaId: "meta-2" } });
  await calls.startWorkspace(aStart());
  await reaches("instance-1", WorkspacePhase.RUNNING);
  await assert.rejects(calls.startWorkspace(second), {
    code: status.RESOURCE_EXHAUSTED,
    details: /the limit workspaces\.maxInstances/,
  });
  await calls.stopWorkspace({ id: "instance-1", policy: 0 });
  await reaches("instance-1", WorkspacePhase.STOPPED);
  await calls.startWorkspace(second);
});

test("saves a snapshot and no backup of a probe", LIMIT, async (t) => {
  const { calls, node, reaches } = await startWorkspaceWorld(t);
  await calls.startWorkspace(aStart({ type: WorkspaceType.PROBE }));
  await reaches("instance-1", WorkspacePhase.RUNNING);
  await calls.stopWorkspace({ id: "instance-1", policy: 0 });
  const { conditions } = await reaches("instance-1", WorkspacePhase.STOPPED);
  assert.match(conditions?.snapshot ?? "", /instance-1_.*\.tar\.zst@memory$/);
  await calls.startWorkspace(aStart({ id: "instance-2" }));
  await reaches("instance-2", WorkspacePhase.RUNNING);
  assert.equal(node.orders.get("instance-2")?.restore, undefined);
});

test("refuses changes of a stopped workspace, and returns the backup of its stop", LIMIT, async (t) => {
  const { calls, reaches } = await startWorkspaceWorld(t);
  const id = "instance-1";
  await calls.startWorkspace(aStart());
  await reaches(id, WorkspacePhase.RUNNING);
  await calls.stopWorkspace({ id, policy: 0 });
  await reaches(id, WorkspacePhase.STOPPED);
  const refused = [
    calls.setTimeout({ id, duration: "1h" }),
    calls.controlPort({ id, expose: true, spec: { port: 8080, visibility: 0, url: "" } }),
    calls.controlAdmission({ id, level: 1 }),
    calls.takeSnapshot({ id, returnImmediately: true }),
  ];
  for (const call of refused) await assert.rejects(call, { code: status.FAILED_PRECONDITION });
  assert.match((await calls.backupWorkspace({ id })).url, /instance-1_final-1\.tar\.zst@memory$/);
  assert.deepEqual(await calls.stopWorkspace({ id, policy: 0 }), {});
});

test("refuses a backup of a workspace whose node is away as UNAVAILABLE", LIMIT, async (t) => {
  const { calls, agent, reaches } = await startWorkspaceWorld(t, { heartbeatSeconds: 0.5 });
  const id = "instance-1";
  await calls.startWorkspace(aStart());
  await reaches(id, WorkspacePhase.RUNNING);
  agent.close();
  await reaches(id, WorkspacePhase.INTERRUPTED);
  const away = { code: status.UNAVAILABLE, details: /node n1 of workspace instance-1 is unavailable/ };
  await assert.rejects(calls.backupWorkspace({ id }), away);
});

test("refuses too many ports and too many concurrent backups as RESOURCE_EXHAUSTED", LIMIT, async (t) => {
  const { calls, node, reaches } = await startWorkspaceWorld(t);
  const id = "instance-1";
  await calls.startWorkspace(aStart());
  await reaches(id, WorkspacePhase.RUNNING);
  const open = (port: number) =>
    calls.controlPort({ id, expose: true, spec: { port, visibility: 0, url: "" } });
  for (let port = 1; port <= MAX_PORTS; port += 1) await open(20_000 + port);
  await assert.rejects(open(30_000), {
    code: status.RESOURCE_EXHAUSTED,
    details: /has \d+ exposed ports: remove some first$/,
  });
  await open(20_001);

  node.behaviour.transfer = () => undefined;
  const snapshot = () => calls.takeSnapshot({ id, returnImmediately: true });
  for (let transfer = 0; transfer < MAX_OPEN_TRANSFERS; transfer += 1) await snapshot();
  await assert.rejects(snapshot(), {
    code: status.RESOURCE_EXHAUSTED,
    details: /backups and snapshots in progress: wait until one of them is complete$/,
  });
});
