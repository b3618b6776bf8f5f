import assert from "node:assert/strict";
import { test } from "node:test";
import { StopWorkspacePolicy, WorkspaceConditionBool, WorkspacePhase } from "@forage/proto/core";
import { until } from "./support/until.ts";
import { aStart, startWorkspaceWorld } from "./support/workspaces/workspace-world.ts";

test("runs, stops and backs up a workspace, and restores it at the next start", {
  timeout: 60_000,
}, async (t) => {
  const { world, calls, node, agent, content, reaches } = await startWorkspaceWorld(t);
  const started = await calls.startWorkspace(aStart());
  assert.equal(started.url, "https://prefix-1.ws.example.test");
  assert.match(started.ownerToken, /^[A-Za-z0-9_-]{32}$/);
  assert.deepEqual(await calls.startWorkspace(aStart()), started);
  const running = await reaches("instance-1", WorkspacePhase.RUNNING);
  assert.equal(running.runtime?.nodeName, "n1");
  assert.equal(running.conditions?.deployed, WorkspaceConditionBool.TRUE);
  const { http } = world.coordinator;
  const metrics = await (await fetch(`http://${http.host}:${http.port}/metrics`)).text();
  assert.match(metrics, /forage_workspaces\{phase="RUNNING"\} 1\n/);
  assert.match(metrics, /forage_workspace_nodes 1\n/);
  const [pod] = agent.assignments.values();
  assert.deepEqual(pod?.template?.providedVolumes, [
    { name: "workspace", provider: "workspace", id: "instance-1" },
  ]);

  await calls.stopWorkspace({ id: "instance-1", policy: StopWorkspacePolicy.NORMALLY });
  const stopped = await reaches("instance-1", WorkspacePhase.STOPPED);
  assert.equal(stopped.conditions?.finalBackupComplete, WorkspaceConditionBool.TRUE);
  assert.equal(stopped.conditions?.stoppedByRequest, WorkspaceConditionBool.TRUE);
  assert.equal(stopped.conditions?.failed, "");
  assert.ok(stopped.statusVersion > running.statusVersion);

  await calls.startWorkspace(aStart({ id: "instance-2" }));
  await until("the order of the second instance", () => node.orders.has("instance-2"));
  const restore = node.orders.get("instance-2")?.restore;
  assert.ok(restore !== undefined && (await content.stat(restore.object)) !== undefined);
});
