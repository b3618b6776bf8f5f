import assert from "node:assert/strict";
import { test } from "node:test";
import { InstanceRecord } from "@forage/proto/forage/workspaces/v1/records";
import { TransferKind } from "@forage/proto/forage/workspaces/v1/workspaces";
import type { WorkspaceView } from "../view.ts";
import { noSuchWorkspace, type WorkspaceWriter } from "../writer.ts";
import { endStaleExports } from "./export-content.ts";

const EXPORTING = InstanceRecord.fromPartial({
  id: "i1",
  transfers: [
    { id: "export-1", kind: TransferKind.EXPORT },
    { id: "backup-2", kind: TransferKind.BACKUP },
  ],
});

test("the orders of downloads that an earlier coordinator served are removed, and no other transfers", async () => {
  const changed: InstanceRecord[] = [];
  await endStaleExports(viewOf(EXPORTING), writerOf(EXPORTING, changed));
  assert.deepEqual(
    changed.map(({ transfers }) => transfers.map(({ id }) => id)),
    [["backup-2"]],
  );
});

test("a record without the order stays as it is", async () => {
  const ended = { ...EXPORTING, transfers: [] };
  const changed: InstanceRecord[] = [];
  await endStaleExports(viewOf(EXPORTING), writerOf(ended, changed));
  assert.deepEqual(changed, []);
});

test("ignores an instance that is removed during the export", async () => {
  const update = (id: string) => Promise.reject(noSuchWorkspace(id));
  await endStaleExports(viewOf(EXPORTING), { update } as unknown as WorkspaceWriter);
});

function viewOf(record: InstanceRecord): WorkspaceView {
  return { instances: () => [{ key: "", revision: 1, record }] } as unknown as WorkspaceView;
}

/** A writer of one record, which is as it is when the change is made. */
function writerOf(present: InstanceRecord, changed: InstanceRecord[]): WorkspaceWriter {
  const update: WorkspaceWriter["update"] = async (_id, change) => {
    const after = change(present);
    if (after !== present) changed.push(after);
    return after;
  };
  return { update } as unknown as WorkspaceWriter;
}
