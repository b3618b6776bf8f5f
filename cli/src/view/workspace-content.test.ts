import assert from "node:assert/strict";
import { test } from "node:test";
import { NodeContent, NodeContentState, StoredArchive } from "@forage/proto/forage/workspaces/v1/content";
import { TransferKind } from "@forage/proto/forage/workspaces/v1/workspaces";
import { archiveColumns, contentColumns } from "./workspace-content.ts";

const MEBIBYTE = 1024n ** 2n;

function cells<Row>(
  columns: readonly { readonly title: string; readonly value: (row: Row) => string }[],
  row: Row,
): Record<string, string> {
  return Object.fromEntries(columns.map(({ title, value }) => [title, value(row)]));
}

test("shows the size of content on a node in whole mebibytes, rounded up", () => {
  const diskOf = (usedBytes: bigint): string | undefined =>
    cells(contentColumns(), NodeContent.fromPartial({ usedBytes })).DISK;
  assert.deepEqual([0n, 1n, MEBIBYTE, MEBIBYTE + 1n, 2_000n * MEBIBYTE].map(diskOf), [
    "-",
    "1Mi",
    "1Mi",
    "2Mi",
    "2000Mi",
  ]);
});

test("shows the state of content on a node", () => {
  const { IN_USE, SAVING, KEPT, DELETING, UNSPECIFIED } = NodeContentState;
  assert.deepEqual(
    [IN_USE, SAVING, KEPT, DELETING, UNSPECIFIED].map(
      (state) => cells(contentColumns(), NodeContent.fromPartial({ state })).STATE,
    ),
    ["InUse", "Saving", "Kept", "Deleting", "Unknown"],
  );
});

test("shows generation, size and age of an archive, without the generation for a snapshot", () => {
  const archive = { metaId: "m", owner: "o", generation: 2, sizeBytes: 5n * MEBIBYTE, url: "u" };
  const at = { seconds: 100n, nanos: 0 };
  const shown = (kind: TransferKind): Record<string, string> =>
    cells(archiveColumns(160_000), StoredArchive.fromPartial({ ...archive, kind, at }));
  assert.deepEqual(shown(TransferKind.BACKUP), {
    ...{ WORKSPACE: "m", OWNER: "o", KIND: "Backup 2", SIZE: "5Mi", AGE: "1m", URL: "u" },
  });
  assert.equal(shown(TransferKind.SNAPSHOT).KIND, "Snapshot");
});

test("aligns sizes and ages on the right, and omits an empty column of messages", () => {
  const columns = [...contentColumns(), ...archiveColumns(0)];
  const right = columns.filter(({ alignRight }) => alignRight).map(({ title }) => title);
  assert.deepEqual(right, ["DISK", "SIZE", "AGE"]);
  const whenFilled = columns.filter((column) => column.whenFilled).map(({ title }) => title);
  assert.deepEqual(whenFilled, ["MESSAGE"]);
});
