import assert from "node:assert/strict";
import { test } from "node:test";
import { WorkspaceConditionBool, WorkspacePhase } from "@forage/proto/core";
import { type DownloadContentResponse, NodeContentState } from "@forage/proto/forage/workspaces/v1/content";
import { TransferState } from "@forage/proto/forage/workspaces/v1/workspaces";
import { status } from "@grpc/grpc-js";
import { until } from "./support/until.ts";
import { aStart, startWorkspaceWorld } from "./support/workspaces/workspace-world.ts";

const LIMIT = { timeout: 180_000 };
const ID = "instance-1";

test("keeps unsaved content with its record until it is downloaded, saved or discarded", LIMIT, async (t) => {
  const { calls, node, world, reaches } = await startWorkspaceWorld(t);
  const contents = world.workspaceContent();
  const onNodes = async () => (await contents.listContent({ owner: "", metaId: "" })).onNodes;
  const stateOf = async (id: string) => (await onNodes()).find(({ instanceId }) => instanceId === id)?.state;
  const download = (instanceId: string) =>
    collect(contents.downloadContent({ of: { $case: "instanceId", value: instanceId } }));
  const keep = async (id: string, metaId: string): Promise<void> => {
    node.behaviour.transfer = () => ({ state: TransferState.FAILED, message: "the directory is missing" });
    await calls.startWorkspace(aStart({ id, metadata: { metaId } }));
    await reaches(id, WorkspacePhase.RUNNING);
    await calls.stopWorkspace({ id, policy: 1 });
    const stopped = await reaches(id, WorkspacePhase.STOPPED);
    assert.match(stopped.message, /stays on node n1: see `forage workspace content ls`/);
    assert.equal(stopped.conditions?.finalBackupComplete, WorkspaceConditionBool.FALSE);
  };
  await keep(ID, "meta-1");
  world.clock.skip(3_600_000);
  assert.equal(await stateOf(ID), NodeContentState.KEPT);
  assert.match((await onNodes())[0]?.message ?? "", /the directory is missing/);
  assert.equal(node.orders.get(ID)?.dispose, false);
  await assert.rejects(download(ID), { code: status.UNAVAILABLE });
  node.behaviour.transfer = () => "store";
  assert.equal(await download(ID), `content of ${ID}`);

  // The next instance changes its content, and is saved before the content of the first one.
  await calls.startWorkspace(aStart({ id: "instance-2" }));
  await reaches("instance-2", WorkspacePhase.RUNNING);
  await calls.stopWorkspace({ id: "instance-2", policy: 1 });
  await reaches("instance-2", WorkspacePhase.STOPPED);
  await contents.retryContent({ instanceId: ID });
  await until("the content is saved, and its node deletes it", () => node.orders.get(ID)?.dispose === true);
  const { stored } = await contents.listContent({ owner: "owner-1", metaId: "meta-1" });
  assert.deepEqual(
    stored.map(({ instanceId }) => instanceId),
    ["instance-2", ID],
  );
  const url = stored[1]?.url ?? "";
  assert.equal(
    await collect(contents.downloadContent({ of: { $case: "url", value: url } })),
    `content of ${ID}`,
  );
  await assert.rejects(contents.retryContent({ instanceId: "instance-2" }), {
    code: status.FAILED_PRECONDITION,
  });
  await assert.rejects(contents.discardContent({ instanceId: "instance-2" }), {
    code: status.FAILED_PRECONDITION,
  });

  await keep("instance-3", "meta-3");
  await contents.discardContent({ instanceId: "instance-3" });
  await until("the node deletes it", () => node.orders.get("instance-3")?.dispose === true);
  await until("it is gone", async () => (await stateOf("instance-3")) === undefined);
  await until("its record goes", () => {
    world.clock.skip(5_000);
    return node.removals.includes("instance-3");
  });
});

test("requires an editor of the workspaces' namespace for decisions about content", LIMIT, async (t) => {
  const { world } = await startWorkspaceWorld(t);
  const viewer = world.workspaceContent(await world.token("viewer", ["workspaces"]));
  assert.deepEqual(await viewer.listContent({ owner: "", metaId: "" }), { onNodes: [], stored: [] });
  const denied = { code: status.PERMISSION_DENIED };
  await assert.rejects(viewer.discardContent({ instanceId: ID }), denied);
  const value = { $case: "instanceId", value: ID } as const;
  await assert.rejects(collect(viewer.downloadContent({ of: value })), denied);
  const stranger = world.workspaceContent(await world.token("admin", ["other"]));
  await assert.rejects(stranger.listContent({ owner: "", metaId: "" }), denied);
});

async function collect(stream: AsyncIterable<DownloadContentResponse>): Promise<string> {
  let text = "";
  for await (const { data } of stream) text += Buffer.from(data).toString();
  return text;
}
