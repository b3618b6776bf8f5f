import { isDeepStrictEqual } from "node:util";
import {
  StartWorkspaceRequest as StartRequest,
  type StartWorkspaceRequest,
  type StartWorkspaceResponse,
  type StartWorkspaceSpec,
  WorkspaceFeatureFlag,
  WorkspacePhase,
  WorkspaceSpec,
  WorkspaceType,
} from "@forage/proto/core";
import { InstanceRecord, InstanceSecrets, LiveRecord } from "@forage/proto/forage/workspaces/v1/records";
import { CoordinatorError } from "../../errors.ts";
import { encodeRecord } from "../../model/codec.ts";
import { hashMessage } from "../../model/hash.ts";
import { toEpochMs, toTimestamp } from "../../model/timestamp.ts";
import type { Vault } from "../../objects/vault.ts";
import type { ContentStore } from "../content/content-store.ts";
import { liveKey } from "../keys.ts";
import { ownerToken } from "../owner-token.ts";
import { isHeadless } from "../phase/status.ts";
import { openSecrets, secretsWrite } from "../records.ts";
import { classOf, diskBytesOf, type WorkspaceSettings, workspaceUrl } from "../settings.ts";
import type { WorkspaceView } from "../view.ts";
import type { WorkspaceWriter } from "../writer.ts";
import { checkQuota, type NamespaceQuota } from "./quota.ts";
import { chooseRestore } from "./restore.ts";
import { archivesOf } from "./snapshot-archives.ts";
import { validateStart } from "./validate.ts";

export interface StartOptions {
  readonly view: WorkspaceView;
  readonly writer: WorkspaceWriter;
  readonly vault: Vault;
  readonly content: ContentStore;
  readonly settings: WorkspaceSettings;
  /** Checks the quota of the namespace. */
  readonly quota: NamespaceQuota;
  readonly nowMs: () => number;
  readonly randomBytes: (count: number) => Uint8Array;
}

/** The most attempts to start; concurrent starts of one meta id are rare. */
const MAX_TRIES = 5;

/**
 * Stores a new instance, and returns its URL and owner token. A retry with an equal request returns
 * the same answer. Throws INVALID, ALREADY_EXISTS, FAILED_PRECONDITION, RESOURCE_EXHAUSTED.
 */
export async function startWorkspace(
  request: StartWorkspaceRequest,
  options: StartOptions,
): Promise<StartWorkspaceResponse> {
  const { settings } = options;
  validateStart(request, settings);
  const requestHash = hashMessage(StartRequest, request);
  const answered = repeated(request.id, requestHash, options) ?? equalBuild(request, options);
  if (answered !== undefined) return answered;
  const archives = await archivesOf(request.spec?.initializer, options.content);
  const store = () => storeInstance(request, requestHash, { ...options, archives });
  // Without a quota, starts can run concurrently.
  return options.quota.hasQuota(settings.namespace)
    ? options.quota.inTurn(settings.namespace, store)
    : store();
}

async function storeInstance(
  request: StartWorkspaceRequest,
  requestHash: string,
  options: InstanceInput,
): Promise<StartWorkspaceResponse> {
  const { settings, writer, view } = options;
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    const known = repeated(request.id, requestHash, options) ?? equalBuild(request, options);
    if (known !== undefined) return known;
    assertMetaIdIsFree(request, view);
    checkQuota(request, options);
    if (view.liveCount >= settings.maxInstances)
      throw new CoordinatorError(
        "RESOURCE_EXHAUSTED",
        `${settings.maxInstances} workspaces have not stopped, which is the limit workspaces.maxInstances: stop some first`,
      );
    const { record, secrets } = instanceOf(request, requestHash, options);
    const created = writer.create(record);
    const live = liveKey(record.metadata?.metaId ?? "");
    const ops = [
      created.op,
      secretsWrite(record.id, secrets, options.vault),
      { type: "put", key: live, value: encodeRecord(LiveRecord, { instanceId: record.id }) } as const,
    ];
    const free = { type: "absent", key: live } as const;
    if (await writer.transact([created.compare, free], ops))
      return { url: record.spec?.url ?? "", ownerToken: secrets.ownerToken };
  }
  throw new CoordinatorError(
    "CONFLICT",
    `concurrent requests kept starting workspace ${request.metadata?.metaId}; try again`,
  );
}

/**
 * Returns the answer for a running image build of the same owner and meta id with equal annotations
 * and builder; undefined if there is none. The annotations name the source and target references of
 * the image.
 */
function equalBuild(
  request: StartWorkspaceRequest,
  options: StartOptions,
): StartWorkspaceResponse | undefined {
  const { view, vault } = options;
  const { metadata, spec, type } = request;
  if (type !== WorkspaceType.IMAGEBUILD) return undefined;
  const id = view.live(metadata?.metaId ?? "")?.record.instanceId ?? "";
  const record = view.instance(id)?.record;
  const sealed = view.secrets(id);
  if (record === undefined || sealed === undefined || record.stop !== undefined) return undefined;
  const isEqual =
    record.type === type &&
    record.metadata?.owner === metadata?.owner &&
    record.spec?.workspaceImage === spec?.workspaceImage &&
    isDeepStrictEqual(record.metadata?.annotations, metadata?.annotations);
  if (!isEqual) return undefined;
  return { url: record.spec?.url ?? "", ownerToken: openSecrets(id, sealed, vault).ownerToken };
}

function repeated(
  id: string,
  requestHash: string,
  { view, vault }: StartOptions,
): StartWorkspaceResponse | undefined {
  const entry = view.instance(id);
  if (entry === undefined) return undefined;
  const sealed = view.secrets(id);
  if (entry.record.requestHash !== requestHash || sealed === undefined)
    throw new CoordinatorError(
      "ALREADY_EXISTS",
      `workspace instance "${id}" exists with a different request: each start needs its own id`,
    );
  return { url: entry.record.spec?.url ?? "", ownerToken: openSecrets(id, sealed, vault).ownerToken };
}

function assertMetaIdIsFree({ metadata }: StartWorkspaceRequest, view: WorkspaceView): void {
  const live = view.live(metadata?.metaId ?? "");
  if (live === undefined) return;
  throw new CoordinatorError(
    "ALREADY_EXISTS",
    `instance "${live.record.instanceId}" of workspace "${metadata?.metaId}" has not stopped yet: stop it first`,
  );
}

interface InstanceInput extends StartOptions {
  readonly archives: InstanceRecord["archives"];
}

function instanceOf(
  request: StartWorkspaceRequest,
  requestHash: string,
  { settings, view, nowMs, randomBytes, archives }: InstanceInput,
): { readonly record: InstanceRecord; readonly secrets: InstanceSecrets } {
  const { id, type, metadata, spec } = request;
  if (metadata === undefined || spec === undefined)
    throw new CoordinatorError("INTERNAL", "the request was not validated");
  const prefix = request.servicePrefix === "" ? id : request.servicePrefix;
  const backup =
    type === WorkspaceType.IMAGEBUILD ? undefined : view.backup(metadata.owner, metadata.metaId)?.record;
  const generation = chooseRestore(metadata.annotations, backup);
  const restoredMs = toEpochMs(generation?.at);
  const record = InstanceRecord.fromPartial({
    ...{ id, requestHash, type, archives },
    servicePrefix: prefix,
    metadata: { ...metadata, startedAt: toTimestamp(nowMs()) },
    spec: runtimeSpec(spec, type, { settings, id, prefix }),
    quotaBytes: diskBytesOf(settings, spec.class),
    admission: spec.admission,
    sshPublicKeys: spec.sshPublicKeys,
    workspaceLocation: spec.workspaceLocation,
    fixedResources: spec.featureFlags.includes(WorkspaceFeatureFlag.FIXED_RESOURCES),
    createdAt: toTimestamp(nowMs()),
    phase: WorkspacePhase.PENDING,
    conditions: {},
    namespace: settings.namespace,
    ...(generation !== undefined && {
      restore: generation.archive,
      restoredFrom: `restored from the backup of ${new Date(restoredMs ?? 0).toISOString()}`,
    }),
  });
  const { initializer, envvars, git } = spec;
  const secrets = InstanceSecrets.fromPartial({
    ownerToken: ownerToken(randomBytes),
    initializer,
    envvars,
    git,
  });
  return { record, secrets };
}

function runtimeSpec(
  spec: StartWorkspaceSpec,
  type: WorkspaceType,
  {
    settings,
    id,
    prefix,
  }: { readonly settings: WorkspaceSettings; readonly id: string; readonly prefix: string },
): WorkspaceSpec {
  return WorkspaceSpec.fromPartial({
    workspaceImage: spec.workspaceImage,
    deprecatedIdeImage: spec.deprecatedIdeImage,
    ideImage: spec.ideImage,
    headless: isHeadless(type),
    url: workspaceUrl(settings, { id, prefix }),
    exposedPorts: spec.ports.map((port) => ({
      ...port,
      url: workspaceUrl(settings, { id, prefix, port: port.port }),
    })),
    type,
    timeout: spec.timeout,
    class: classOf(settings, spec.class)?.id ?? spec.class,
  });
}
