import assert from "node:assert/strict";
import { test } from "node:test";
import { VirtualClock } from "@forage/common/virtual-clock";
import { ContentSource, SyncResponse, WorkspaceReport } from "@forage/proto/forage/workspaces/v1/workspaces";
import type { ContentActions } from "./content-actions.ts";
import { WorkspaceError } from "./workspace-error.ts";
import type { WorkspaceRecords } from "./workspace-records.ts";
import { Workspaces } from "./workspaces.ts";

const MIB = 1024 * 1024;

test("measures the content while the workspace runs, and counts it until its files are deleted", async (t) => {
  const clock = new VirtualClock();
  let used = 10 * MIB;
  const remains: string[] = [];
  const deletion = Promise.withResolvers<void>();
  const actions: Partial<ContentActions> = {
    initialize: async () => ({ source: ContentSource.EMPTY, message: "" }),
    usedBytes: async () => used,
    dispose: async (id) => void remains.push(id),
    remains: async () => [...remains],
    removeRemains: async () => {
      await deletion.promise;
      remains.length = 0;
    },
  };
  const records: Partial<WorkspaceRecords> = {
    load: async () => new Map(),
    readReport: async (instanceId) => WorkspaceReport.fromPartial({ instanceId, stage: 1 }),
    saveOrder: async () => undefined,
    saveReport: async () => undefined,
  };
  const workspaces = await Workspaces.open({
    ...{ clock, random: () => 0.5, log: { info: () => undefined, warn: () => undefined } },
    ...{ records: records as WorkspaceRecords, actions: actions as ContentActions },
  });
  t.after(() => workspaces.close());
  workspaces.start({ active: () => false, retryStart: () => undefined });
  const order = { instanceId: "a", podUid: "pod-a" };
  await workspaces.apply(SyncResponse.fromPartial({ orders: [{ ...order, version: 1n }] }));
  const becomes = async (bytes: number | undefined): Promise<void> => {
    const expected = bytes === undefined ? undefined : BigInt(bytes);
    for (let turn = 0; workspaces.reportOf("a")?.usedBytes !== expected; turn++) {
      assert.ok(turn < 1_000, `${workspaces.reportOf("a")?.usedBytes} becomes ${bytes}`);
      clock.advance(1_000);
      await new Promise((resolve) => setImmediate(resolve));
    }
  };
  await becomes(10 * MIB);
  used = 50 * MIB;
  await becomes(50 * MIB);
  await workspaces.apply(SyncResponse.fromPartial({ orders: [{ ...order, version: 2n, dispose: true }] }));
  while (workspaces.reportOf("a")?.stage !== 4) await new Promise((resolve) => setImmediate(resolve));
  for (let turn = 0; turn < 50; turn++) await new Promise((resolve) => setImmediate(resolve));
  assert.equal(workspaces.reportOf("a")?.usedBytes, BigInt(50 * MIB));
  deletion.resolve();
  await becomes(0);
  await workspaces.apply(SyncResponse.fromPartial({ removals: ["a"] }));
  await becomes(undefined);
});

test("saves an order that found the disk full once more, with the next orders", async (t) => {
  const saved: bigint[] = [];
  let failure: WorkspaceError | undefined = new WorkspaceError("NO_ROOM", "the disk is full");
  const records: Partial<WorkspaceRecords> = {
    load: async () => new Map(),
    readReport: async (instanceId) => WorkspaceReport.fromPartial({ instanceId, stage: 1 }),
    saveOrder: async ({ version }) => {
      if (failure !== undefined) throw failure;
      saved.push(version);
    },
  };
  const warned: unknown[] = [];
  const workspaces = await Workspaces.open({
    ...{ clock: new VirtualClock(), random: () => 0.5, actions: {} as ContentActions },
    records: records as WorkspaceRecords,
    log: { info: () => undefined, warn: ({ event }) => void warned.push(event) },
  });
  t.after(() => workspaces.close());
  const order = { instanceId: "a", podUid: "pod-a", version: 1n };
  await workspaces.apply(SyncResponse.fromPartial({ orders: [order] }));
  assert.deepEqual([workspaces.ids, warned], [["a"], ["workspace-order-not-on-disk"]]);
  failure = undefined;
  for (let call = 0; call < 2; call++) await workspaces.apply(SyncResponse.fromPartial({}));
  assert.deepEqual(saved, [1n]);
  failure = new WorkspaceError("HOST_FAILED", "the disk is read-only");
  await assert.rejects(workspaces.apply(SyncResponse.fromPartial({ orders: [order] })), failure);
});
