import type { InstanceRecord } from "@forage/proto/forage/workspaces/v1/records";
import { ContentStage, TransferKind, TransferState } from "@forage/proto/forage/workspaces/v1/workspaces";
import { CoordinatorError } from "../../errors.ts";
import type { ClusterView } from "../../state/cluster-view.ts";
import type { Exports } from "../content/exports.ts";
import { transferObject } from "../content-names.ts";
import { isOpen } from "../phase/content.ts";
import { withTransfer } from "../phase/plan.ts";
import type { WorkspaceView } from "../view.ts";
import { noSuchWorkspace, type WorkspaceWriter } from "../writer.ts";

export interface ExportOptions {
  readonly view: WorkspaceView;
  readonly writer: WorkspaceWriter;
  readonly state: ClusterView;
  readonly exports: Exports;
  readonly nowMs: () => number;
}

/**
 * The most concurrent downloads of one workspace's content. Each occupies a transfer slot of its
 * node.
 */
const MAX_EXPORTS = 2;

/**
 * Yields the archive of content that is on a node. Throws NOT_FOUND, FAILED_PRECONDITION,
 * UNAVAILABLE, RESOURCE_EXHAUSTED.
 */
export async function* exportContent(
  id: string,
  signal: AbortSignal,
  options: ExportOptions,
): AsyncGenerator<Uint8Array> {
  const { view, writer, exports, nowMs } = options;
  let [transferId, object] = ["", ""];
  await writer.update(id, (record) => {
    assertExportable(record, options.state);
    const after = withTransfer(record, TransferKind.EXPORT, {
      ...{ prefix: "export", nowMs: nowMs() },
      nameOf: transferObject,
    });
    ({ id: transferId = "", object = "" } = after.transfers.at(-1) ?? {});
    return after;
  });
  const channel = exports.open(object);
  const check = (): void => {
    const transfer = view.instance(id)?.record.transfers.find((it) => it.id === transferId);
    const isBroken = transfer?.state === TransferState.FAILED || transfer?.state === TransferState.RETRYING;
    if (transfer !== undefined && !isBroken) return;
    channel.close(
      new CoordinatorError(
        "UNAVAILABLE",
        `the content of workspace ${id} can't be read: ${transfer?.message ?? "its record no longer exists"}`,
      ),
    );
  };
  const unsubscribe = view.subscribe((changes) => {
    if (changes.some((change) => change.id === id)) check();
  });
  const abort = (): void => channel.close();
  signal.addEventListener("abort", abort, { once: true });
  try {
    yield* channel;
  } finally {
    signal.removeEventListener("abort", abort);
    unsubscribe();
    exports.close(object, channel);
    await endExport(id, transferId, writer);
  }
}

/** Removes the export orders of an earlier process, whose downloads ended with it. */
export async function endStaleExports(view: WorkspaceView, writer: WorkspaceWriter): Promise<void> {
  for (const { record } of view.instances())
    for (const { id, kind } of record.transfers)
      if (kind === TransferKind.EXPORT) await endExport(record.id, id, writer);
}

async function endExport(id: string, transferId: string, writer: WorkspaceWriter): Promise<void> {
  try {
    await writer.update(id, (record) => {
      const transfers = record.transfers.filter((it) => it.id !== transferId);
      return transfers.length === record.transfers.length ? record : { ...record, transfers };
    });
  } catch (error) {
    // The record may have been removed since.
    if (!(error instanceof CoordinatorError) || error.code !== "NOT_FOUND") throw error;
  }
}

function assertExportable(record: InstanceRecord, state: ClusterView): void {
  const { id, node, contentStage, nodeLost, transfers } = record;
  if (contentStage !== ContentStage.READY || nodeLost)
    throw node === "" || nodeLost
      ? noContent(id)
      : new CoordinatorError(
          "FAILED_PRECONDITION",
          `the content of workspace ${id} is not complete on node ${node}`,
        );
  const health = state.node(node)?.health;
  if (health?.ready !== true)
    throw new CoordinatorError(
      "UNAVAILABLE",
      `node ${node} of workspace ${id} is unavailable: ${health?.message ?? "it was removed"}`,
    );
  if (transfers.filter((it) => isOpen(it) && it.kind === TransferKind.EXPORT).length >= MAX_EXPORTS)
    throw new CoordinatorError(
      "RESOURCE_EXHAUSTED",
      `the content of workspace ${id} is being downloaded ${MAX_EXPORTS} times already`,
    );
}

function noContent(id: string): CoordinatorError {
  return id === ""
    ? noSuchWorkspace(id)
    : new CoordinatorError("FAILED_PRECONDITION", `no node has content of workspace ${id}`);
}
