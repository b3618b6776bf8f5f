import assert from "node:assert/strict";
import { test } from "node:test";
import type { NodeId } from "@forage/identity";
import { InstanceRecord } from "@forage/proto/forage/workspaces/v1/records";
import { ContentStage, SyncRequest } from "@forage/proto/forage/workspaces/v1/workspaces";
import { pino } from "pino";
import type { CallContext } from "../../rpc/caller.ts";
import { NodeSync } from "./sync.ts";

/** One node with workspaces a and b. Reports are written only when the test releases them. */
function setUp() {
  const records = new Map(
    ["a", "b"].map((id) => [id, InstanceRecord.fromPartial({ id, node: "n1" })] as const),
  );
  const gates: (() => void)[] = [];
  const entryOf = (id: string) => {
    const record = records.get(id);
    return record && { key: id, revision: 1, record };
  };
  const sync = new NodeSync({
    view: { instance: entryOf, instancesOnNode: () => [], subscribe: () => () => undefined },
    writer: {
      update: async (id, change) => {
        await new Promise<void>((resolve) => gates.push(resolve));
        const after = change(records.get(id) ?? assert.fail());
        records.set(id, after);
        return after;
      },
    },
    orders: { orderOf: () => undefined },
    quotaOf: () => 0n,
    log: pino({ level: "silent" }),
  });
  const context: CallContext = {
    method: "/forage.workspaces.v1.WorkspaceNodeService/Sync",
    caller: { type: "node", nodeId: "n1" as NodeId },
    peer: "127.0.0.1:1",
    signal: new AbortController().signal,
  };
  /** Opens a stream whose first message reports these stages, and keeps the stream open. */
  const open = (stages: Readonly<Record<string, ContentStage>>): void => {
    const workspaces = Object.entries(stages).map(([instanceId, stage]) => ({ instanceId, stage }));
    async function* requests() {
      yield SyncRequest.fromPartial({ full: true, workspaces });
      await new Promise(() => undefined);
    }
    const responses = sync.sync(requests(), context)[Symbol.asyncIterator]();
    responses.next().catch(() => undefined);
  };
  /** Waits for the given number of reports, and lets the newest one be written. */
  const written = async (waiting = 1): Promise<void> => {
    while (gates.length < waiting) await new Promise((resolve) => setImmediate(resolve));
    gates.pop()?.();
    for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setImmediate(resolve));
  };
  return { open, written, record: (id: string) => records.get(id) ?? assert.fail() };
}

test("ignores remaining reports of a stream that a newer stream of the same node replaced", async () => {
  const { open, written, record } = setUp();
  open({ a: ContentStage.INITIALIZING, b: ContentStage.INITIALIZING });
  await written();
  assert.equal(record("a").contentStage, ContentStage.INITIALIZING);

  // The report of b has not been written when the agent connects again.
  open({ b: ContentStage.READY });
  await written(2);
  await written();

  assert.equal(record("b").contentStage, ContentStage.READY);
  assert.equal(record("b").contentLost, false);
});
