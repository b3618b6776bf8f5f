import type { Log } from "@forage/common/log";
import { messageOf } from "@forage/common/message-of";
import { IdentityError, type NodeId, nodeId } from "@forage/identity";
import type { IssuedCertificate } from "@forage/identity/ca";
import {
  type JoinRefusal,
  type JoinTokenRecord,
  recordUse,
  verifyJoinToken,
} from "@forage/identity/join-token";
import type {
  JoinRequest,
  JoinResponse,
  RenewRequest,
  RenewResponse,
} from "@forage/proto/forage/agent/v1/agent";
import { NodeRecord, type NodeTaint } from "@forage/proto/forage/store/v1/store";
import type { Timestamp } from "@forage/proto/google/protobuf/timestamp";
import type { Authority } from "../authority/authority.ts";
import { CoordinatorError } from "../errors.ts";
import { decodeJsonRecord, encodeJsonRecord, encodeRecord } from "../model/codec.ts";
import { joinTokenKey, nodeKey } from "../model/keys.ts";
import { toEpochMs, toTimestamp } from "../model/timestamp.ts";
import type { CallContext } from "../rpc/caller.ts";
import type { ClusterView } from "../state/cluster-view.ts";
import type { NodeEntry } from "../state/entries.ts";
import type { Compare, Op, Store, StoredRecord } from "../store/index.ts";
import type { Clock } from "../time/clock.ts";
import type { HistoryGuard } from "./history-guard.ts";
import type { RefusalLog } from "./refusal-log.ts";

export interface EnrollOptions {
  readonly store: Store;
  readonly state: ClusterView;
  readonly clock: Clock;
  readonly log: Log;
  readonly refusals: RefusalLog;
  readonly authority: Authority;
  readonly clusterId: string;
  /** The history check. No certificate is signed while the store is out of date. */
  readonly history: Pick<HistoryGuard, "refusal">;
  /** The lifetime of nodes' certificates in milliseconds. */
  readonly lifetimeMs: number;
}

/** The limit of valid certificates of a node: the newest one, and the one with which the node requested its renewal. */
const MAX_SERIALS = 2;

/**
 * The limit of responses to one join before the node has connected. All their certificates are valid, because the node may
 * have received any of them.
 */
const MAX_JOIN_ANSWERS = 20;

/**
 * The limit of attempts. Hosts of one rack that boot together use one token at the same time, and each attempt succeeds for
 * only one of them.
 */
const MAX_TRIES = 20;
/** The limit of attempts of a renewal. Only few other requests change a node's record at the same time. */
const MAX_RENEWAL_TRIES = 5;

/** Creates a node from a join token and a key. Records the use of the token and the node in one transaction. */
export async function join(
  request: JoinRequest,
  context: CallContext,
  options: EnrollOptions,
): Promise<JoinResponse> {
  const { state, authority, clock, log } = options;
  const id = checkedNodeId(request.nodeName);
  // The secret is checked first, because signing is expensive and must not be possible without it.
  const { token } = await findToken(request, options);
  const early =
    token && verifyJoinToken(token, { secret: request.tokenSecret, nodeName: id, keyPin: "" }, clock.nowMs());
  if (early === undefined) throw refused(options, context, id, "WRONG_SECRET");
  if (!early.ok && early.reason !== "USED") throw refused(options, context, id, early.reason);
  const issued = await certify(options, id, request.csr);
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    const plan = await planJoin(request, id, issued, context, options);
    const result = await options.store.txn(plan.compares, plan.ops);
    await state.reached(result.revision);
    if (!result.succeeded) continue;
    log.info({
      event: "node-joined",
      node: id,
      peer: context.peer,
      token: request.tokenId,
      serial: issued.serial,
    });
    return { certificatePem: issued.chainPem, caBundlePem: authority.certPem, clusterId: options.clusterId };
  }
  throw new CoordinatorError(
    "CONFLICT",
    "other joins used the token or the name at the same time; try again",
  );
}

/**
 * Returns the writes that create the node in the current state. @throws CoordinatorError if the state doesn't permit the
 * join.
 */
async function planJoin(
  request: JoinRequest,
  id: NodeId,
  issued: IssuedCertificate,
  context: CallContext,
  options: EnrollOptions,
): Promise<{ readonly compares: Compare[]; readonly ops: Op[] }> {
  const { state, clock } = options;
  const { stored, token } = await findToken(request, options);
  if (stored === undefined || token === undefined) throw refused(options, context, id, "WRONG_SECRET");
  const attempt = { secret: request.tokenSecret, nodeName: id, keyPin: issued.pin };
  const verdict = verifyJoinToken(token, attempt, clock.nowMs());
  if (!verdict.ok) throw refused(options, context, id, verdict.reason);
  const existing = state.node(id);
  const ops: Op[] = [];
  if (verdict.type === "first") {
    if (existing !== undefined && token.nodeName === undefined) throw nameTaken(id);
    const used = recordUse(token, { keyPin: issued.pin, nodeName: id, atMs: clock.nowMs() });
    ops.push({ type: "put", key: stored.key, value: encodeJsonRecord(used) });
    const record = nodeRecord(id, issued, token, existing, clock);
    ops.push({ type: "put", key: nodeKey(id), value: encodeRecord(NodeRecord, record) });
  } else {
    if (!isRetryOf(existing, issued)) throw refused(options, context, id, "USED");
    if (!needsAnswer(existing)) throw refused(options, context, id, "REPLAYED");
    const record = repeatedRecord(existing, issued);
    ops.push({ type: "put", key: nodeKey(id), value: encodeRecord(NodeRecord, record) });
  }
  const compares: Compare[] = [
    { type: "mod-revision", key: stored.key, revision: stored.modRevision },
    { type: "mod-revision", key: nodeKey(id), revision: existing?.revision ?? 0 },
  ];
  return { compares, ops };
}

/**
 * Reports whether the request repeats a join whose response was lost. False once the node was removed, was revoked or has
 * joined again.
 */
function isRetryOf(existing: NodeEntry | undefined, { pin }: IssuedCertificate): existing is NodeEntry {
  return existing !== undefined && !existing.record.revoked && existing.record.publicKeySha256 === pin;
}

/** Reports whether all responses may have been lost. If the node has connected, a repeated request is not its own. */
function needsAnswer({ record }: NodeEntry): boolean {
  return !record.hasConnected && record.serials.length < MAX_JOIN_ANSWERS;
}

/** Returns the token. Its id comes from an unauthenticated client, so invalid ids are not looked up. */
async function findToken(
  { tokenId }: JoinRequest,
  { store }: EnrollOptions,
): Promise<{ readonly stored?: StoredRecord; readonly token?: JoinTokenRecord }> {
  const stored = /^[0-9a-f]{12}$/.test(tokenId) ? await store.get(joinTokenKey(tokenId)) : undefined;
  if (stored === undefined) return {};
  return { stored, token: decodeJsonRecord<JoinTokenRecord>(stored.key, stored.value) };
}

/** Returns a new certificate for a new key of a node that is authenticated by its current certificate. */
export async function renew(
  request: RenewRequest,
  context: CallContext,
  options: EnrollOptions,
): Promise<RenewResponse> {
  const { store, state, authority, log } = options;
  const { id, serial } = renewingNode(context);
  const first = nodeToRenew(state, id);
  const issued = await certify(options, id, request.csr);
  for (let tries = 0; tries < MAX_RENEWAL_TRIES; tries++) {
    const node = nodeToRenew(state, id);
    // A revocation or another host's join must not be undone.
    if (!hasSameCertificates(node.record, first.record)) break;
    const record = renewedRecord(node, serial, issued);
    const result = await store.txn(
      [{ type: "mod-revision", key: nodeKey(id), revision: node.revision }],
      [{ type: "put", key: nodeKey(id), value: encodeRecord(NodeRecord, record) }],
    );
    await state.reached(result.revision);
    if (!result.succeeded) continue;
    log.info({ event: "node-certificate-renewed", node: id, serial: issued.serial });
    return { certificatePem: issued.chainPem, caBundlePem: authority.certPem };
  }
  throw new CoordinatorError("CONFLICT", "other requests changed the node's record; try again");
}

function hasSameCertificates(a: NodeRecord, b: NodeRecord): boolean {
  return a.revoked === b.revoked && a.serials.join() === b.serials.join();
}

/** @throws CoordinatorError NOT_FOUND. */
function nodeToRenew(state: ClusterView, id: NodeId): NodeEntry {
  const node = state.node(id);
  if (node !== undefined) return node;
  throw new CoordinatorError("NOT_FOUND", `node ${id} was removed: join again with a new token`);
}

/** Returns the record of a node with a further certificate. `serial` is that of the certificate in use. */
function renewedRecord(node: NodeEntry, serial: string | undefined, issued: IssuedCertificate): NodeRecord {
  // The response may be lost. The certificate in use stays valid, because two lost responses would otherwise lock the node
  // out.
  const kept = serial === undefined ? node.record.serials : [serial];
  return {
    ...node.record,
    serials: [issued.serial, ...kept].slice(0, MAX_SERIALS),
    publicKeySha256: issued.pin,
    certificateEnds: toTimestamp(issued.notAfterMs),
    certificateBegins: newestBegin(node, issued),
    certificateAuthority: issued.authorityPin,
  };
}

/** Returns the calling node by its certificate, which may have expired, and the serial number of the certificate. */
function renewingNode({ caller }: CallContext): { readonly id: NodeId; readonly serial: string | undefined } {
  if (caller.type === "node") return { id: caller.nodeId, serial: caller.serial };
  if (caller.type === "anonymous" && caller.expiredNode !== undefined)
    return { id: caller.expiredNode.nodeId, serial: caller.expiredNode.serial };
  throw new CoordinatorError("PERMISSION_DENIED", "only nodes can renew certificates");
}

/** A certificate as presented by its holder. */
interface PresentedCertificate {
  readonly serial: string;
  readonly notBeforeMs: number;
}

/**
 * Reports whether a certificate is revoked. A certificate is valid while its node exists and is not revoked, and while it
 * is one of the node's newest. A certificate that begins after all that the store knows is valid too: only this authority
 * can have issued it, and the store was set back since, by a restore or an old copy. Its node must be able to connect, to
 * continue or to prove that the store is out of date.
 */
export function isRevoked(
  node: NodeEntry | undefined,
  { serial, notBeforeMs }: PresentedCertificate,
): boolean {
  if (node === undefined || node.record.revoked) return true;
  if (node.record.serials.includes(serial)) return false;
  const newestMs = toEpochMs(node.record.certificateBegins);
  return newestMs === undefined || notBeforeMs <= newestMs;
}

function nodeRecord(
  id: NodeId,
  issued: IssuedCertificate,
  token: JoinTokenRecord,
  existing: NodeEntry | undefined,
  clock: Clock,
): NodeRecord {
  return {
    name: id,
    joinedAt: toTimestamp(clock.nowMs()),
    publicKeySha256: issued.pin,
    serials: [issued.serial],
    revoked: false,
    unschedulable: existing?.record.unschedulable ?? false,
    labels: { ...existing?.record.labels, ...token.labels },
    taints: taintsOf(existing, token, clock),
    unreachableSince: undefined,
    notReadySince: undefined,
    drain: existing?.record.drain,
    certificateEnds: toTimestamp(issued.notAfterMs),
    certificateBegins: newestBegin(existing, issued),
    certificateAuthority: issued.authorityPin,
    // The node has no other certificate.
    connectedAuthority: issued.authorityPin,
    hasConnected: false,
  };
}

/**
 * Returns the record with the certificate added. Nothing else changes, because the node may have received an earlier
 * response, and may have been changed since.
 */
function repeatedRecord(existing: NodeEntry, issued: IssuedCertificate): NodeRecord {
  const { serials, ...record } = existing.record;
  return {
    ...record,
    serials: [issued.serial, ...serials],
    certificateEnds: toTimestamp(issued.notAfterMs),
    certificateBegins: newestBegin(existing, issued),
    certificateAuthority: issued.authorityPin,
  };
}

/** Returns the node's taints. A taint of the token replaces an existing one with the same key and effect. */
function taintsOf(
  existing: NodeEntry | undefined,
  { taints: added = [] }: JoinTokenRecord,
  clock: Clock,
): NodeTaint[] {
  const stays = (existing?.record.taints ?? []).filter(
    (taint) => !added.some(({ key, effect }) => key === taint.key && effect === taint.effect),
  );
  return [...stays, ...added.map((taint) => ({ ...taint, addedAt: toTimestamp(clock.nowMs()) }))];
}

/** Returns the latest begin of a certificate. The clock may have been set back since the last certificate. */
function newestBegin(node: NodeEntry | undefined, { notBeforeMs }: IssuedCertificate): Timestamp {
  return toTimestamp(Math.max(toEpochMs(node?.record.certificateBegins) ?? 0, notBeforeMs));
}

async function certify(
  { authority, lifetimeMs, history }: EnrollOptions,
  id: NodeId,
  csr: Uint8Array,
): Promise<IssuedCertificate> {
  if (history.refusal !== undefined) throw new CoordinatorError("FAILED_PRECONDITION", history.refusal);
  try {
    return await authority.issueNode(id, csr, lifetimeMs);
  } catch (error) {
    if (error instanceof IdentityError)
      throw new CoordinatorError("INVALID", `csr: ${error.message}`, { cause: error });
    throw error;
  }
}

function checkedNodeId(name: string): NodeId {
  try {
    return nodeId(name);
  } catch (error) {
    const description = messageOf(error);
    throw new CoordinatorError("INVALID", `node_name: ${description}`, {
      violations: [{ field: "node_name", description }],
    });
  }
}

function refused(
  options: EnrollOptions,
  context: CallContext,
  node: NodeId,
  reason: Refusal,
): CoordinatorError {
  options.refusals.note(context.peer, { node, reason });
  return new CoordinatorError("PERMISSION_DENIED", REFUSALS[reason]);
}

/**
 * The reason why a join is refused. `REPLAYED`: the request was sent again although the node already has its certificate.
 */
type Refusal = JoinRefusal | "REPLAYED";

const REFUSALS: Readonly<Record<Refusal, string>> = {
  WRONG_SECRET: "the join token is unknown or wrong: create a new one with `forage token create`",
  EXPIRED: "the join token has expired: create a new one with `forage token create`",
  WRONG_NAME: "the join token is for a node with another name",
  USED: "the join token has been used: create a new one with `forage token create`",
  REPLAYED:
    "the join token has been used by this node, which has received its certificate: create a new one with `forage token create --node NAME`",
};

function nameTaken(id: NodeId): CoordinatorError {
  const message = `node ${id} has joined already: choose another name, or create a token for this node with \`forage token create --node ${id}\``;
  return new CoordinatorError("ALREADY_EXISTS", message);
}
