import { WorkspacePhase } from "@forage/proto/core";
import {
  DiscardContentResponse,
  type DownloadContentRequest,
  type DownloadContentResponse,
  type ListContentRequest,
  type ListContentResponse,
  NodeContent,
  NodeContentState,
  RetryContentResponse,
  StoredArchive,
  type WorkspaceContentServiceService,
} from "@forage/proto/forage/workspaces/v1/content";
import type { InstanceRecord } from "@forage/proto/forage/workspaces/v1/records";
import { ContentStage, TransferKind } from "@forage/proto/forage/workspaces/v1/workspaces";
import { CoordinatorError } from "../../errors.ts";
import { assertNamespace } from "../../rpc/access.ts";
import type { CallContext } from "../../rpc/caller.ts";
import type { Handlers } from "../../rpc/serve.ts";
import type { ContentStore } from "../content/content-store.ts";
import { parseSnapshotUrl, snapshotUrl } from "../content/object-name.ts";
import type { NodeSync } from "../node/sync.ts";
import { failed } from "../phase/conditions.ts";
import { FINAL_TRANSFER, hasPod, isKept, mayDispose, needsSaving } from "../phase/content.ts";
import type { WorkspaceSettings } from "../settings.ts";
import type { WorkspaceView } from "../view.ts";
import type { WorkspaceWriter } from "../writer.ts";
import { type ExportOptions, exportContent } from "./export-content.ts";

export interface ContentServiceOptions extends ExportOptions {
  readonly view: WorkspaceView;
  readonly writer: WorkspaceWriter;
  readonly content: ContentStore;
  readonly settings: WorkspaceSettings;
  readonly sync: Pick<NodeSync, "usedBytesOf">;
}

/**
 * Implements WorkspaceContentService, through which operators manage content. Callers need a role
 * in the namespace of workspaces.
 */
export function contentService(
  options: ContentServiceOptions,
): Handlers<typeof WorkspaceContentServiceService> {
  const { writer, settings } = options;
  const assertAllowed = ({ caller, method }: Pick<CallContext, "caller" | "method">): void =>
    assertNamespace(caller, method, settings.namespace);
  return {
    listContent: (request, context) => {
      assertAllowed(context);
      return Promise.resolve(listContent(request, options));
    },
    retryContent: async ({ instanceId }, context) => {
      assertAllowed(context);
      await writer.update(instanceId, retried);
      return RetryContentResponse.fromPartial({});
    },
    discardContent: async ({ instanceId }, context) => {
      assertAllowed(context);
      await writer.update(instanceId, discarded);
      return DiscardContentResponse.fromPartial({});
    },
    downloadContent: (request, context) => {
      assertAllowed(context);
      return downloadContent(request, context.signal, options);
    },
  };
}

function listContent(
  { owner, metaId }: ListContentRequest,
  { view, content, sync }: ContentServiceOptions,
): ListContentResponse {
  const isRequested = (it: { readonly owner: string; readonly metaId: string }): boolean =>
    (owner === "" || it.owner === owner) && (metaId === "" || it.metaId === metaId);
  const onNodes = view.instances().flatMap(({ record }) => {
    const about = nodeContentOf(record, sync.usedBytesOf(record.id));
    return about !== undefined && isRequested(about) ? [about] : [];
  });
  const backups = view.backups().flatMap(({ record }) =>
    record.generations.map(({ archive, instanceId, kind, at }, generation) =>
      StoredArchive.fromPartial({
        ...{ owner: record.owner, metaId: record.metaId, instanceId, kind, at, generation },
        ...{ sizeBytes: archive?.sizeBytes ?? 0n, url: snapshotUrl(archive?.object ?? "", content.name) },
      }),
    ),
  );
  const snapshots = view.snapshots().map(({ record }) =>
    StoredArchive.fromPartial({
      ...{ owner: record.owner, metaId: metaIdOf(record.archive?.object ?? "") },
      ...{ instanceId: record.instanceId, kind: TransferKind.SNAPSHOT, at: record.at },
      ...{
        sizeBytes: record.archive?.sizeBytes ?? 0n,
        url: snapshotUrl(record.archive?.object ?? "", content.name),
      },
    }),
  );
  return { onNodes, stored: [...backups, ...snapshots].filter(isRequested) };
}

/** Describes the content of an instance on its node. Returns undefined if no node has any. */
function nodeContentOf(record: InstanceRecord, usedBytes: number): NodeContent | undefined {
  const { id, metadata, node, nodeLost, contentStage, phase } = record;
  const hasNone = [ContentStage.UNSPECIFIED, ContentStage.DISPOSED].some((stage) => stage === contentStage);
  if (node === "" || nodeLost || hasNone) return undefined;
  const { owner = "", metaId = "" } = metadata ?? {};
  const isOver = phase === WorkspacePhase.STOPPING || phase === WorkspacePhase.STOPPED;
  const state = isKept(record)
    ? NodeContentState.KEPT
    : mayDispose(record)
      ? NodeContentState.DELETING
      : isOver
        ? NodeContentState.SAVING
        : NodeContentState.IN_USE;
  const last = record.transfers.findLast(({ message }) => message !== "")?.message ?? "";
  const message = isOver ? last || record.message : record.message;
  return NodeContent.fromPartial({
    ...{ instanceId: id, owner, metaId, node, state, message },
    usedBytes: BigInt(Math.round(usedBytes)),
  });
}

/**
 * Returns the meta id in an archive's name. A meta id that `archiveName` shortened is returned in
 * its short form.
 */
function metaIdOf(object: string): string {
  const segment = object.split("/")[1] ?? "";
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}

/** Removes the failed final transfer, so that the plan orders another one. */
function retried(record: InstanceRecord): InstanceRecord {
  if (!isKept(record))
    throw new CoordinatorError(
      "FAILED_PRECONDITION",
      `workspace ${record.id} has no content that could not be saved, so that there is nothing to retry`,
    );
  const transfers = record.transfers.filter(({ id }) => !id.startsWith(FINAL_TRANSFER));
  return { ...record, contentKept: false, transfers };
}

function discarded(record: InstanceRecord): InstanceRecord {
  if (record.contentDiscarded) return record;
  const isUnsaved = record.stop !== undefined && !hasPod(record) && needsSaving(record);
  if (!isKept(record) && !isUnsaved)
    throw new CoordinatorError(
      "FAILED_PRECONDITION",
      `workspace ${record.id} has no unsaved content to discard: its content is in use, saved or deleted`,
    );
  const given = { ...record, contentKept: true, contentDiscarded: true };
  return record.phase === WorkspacePhase.STOPPED
    ? given
    : failed(given, "the content was discarded on request");
}

async function* downloadContent(
  { of }: DownloadContentRequest,
  signal: AbortSignal,
  options: ContentServiceOptions,
): AsyncGenerator<DownloadContentResponse> {
  const { content } = options;
  if (of?.$case === "instanceId") {
    for await (const data of exportContent(of.value, signal, options)) yield { data: Buffer.from(data) };
    return;
  }
  const parsed = parseSnapshotUrl(of?.value ?? "");
  if (parsed === undefined || parsed.store !== content.name)
    throw new CoordinatorError(
      "INVALID",
      `url: must be one that ListContent returns, of the store ${content.name}`,
    );
  for await (const chunk of content.read(parsed.object, { offsetBytes: 0, signal }))
    for (let at = 0; at < chunk.byteLength; at += MESSAGE_BYTES)
      yield { data: Buffer.from(chunk.subarray(at, at + MESSAGE_BYTES)) };
}

/** The size of data in one gRPC message, as in the transfers of nodes. */
const MESSAGE_BYTES = 256 * 1024;
