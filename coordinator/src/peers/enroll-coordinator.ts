import type { Log } from "@forage/common/log";
import {
  type CoordinatorTokenRecord,
  type CoordinatorTokenRefusal,
  coordinatorTokenRefusal,
} from "@forage/identity/coordinator-token";
import { isTokenId } from "@forage/identity/pinned-token";
import type { JoinRequest, JoinResponse, KeyFile } from "@forage/proto/forage/coordinator/v1/coordinator";
import { CoordinatorError } from "../errors.ts";
import type { HistoryGuard } from "../link/history-guard.ts";
import type { RefusalLog } from "../link/refusal-log.ts";
import { decodeJsonRecord, encodeJsonRecord } from "../model/codec.ts";
import type { EventRecorder } from "../model/event.ts";
import { coordinatorTokenKey } from "../model/keys.ts";
import type { CallContext } from "../rpc/caller.ts";
import type { Store, StoredRecord } from "../store/index.ts";
import type { Clock } from "../time/clock.ts";

/**
 * Reads the files that all coordinators of the cluster share. Absent if the store can serve only
 * one coordinator.
 */
export type ReadKeyFiles = () => Promise<readonly KeyFile[]>;

export interface EnrollCoordinatorOptions {
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Log;
  readonly events: EventRecorder;
  readonly refusals: RefusalLog;
  /** The history check, because an outdated store may not contain the use of a token. */
  readonly history: Pick<HistoryGuard, "refusal">;
  readonly readKeyFiles?: ReadKeyFiles | undefined;
}

const MAX_NAME_LENGTH = 253;

/**
 * Sends the keys of the cluster to a coordinator with an unused token. The use is stored before the
 * answer is sent, so the operator must make another token if the answer is lost.
 */
export async function enrollCoordinator(
  request: JoinRequest,
  context: CallContext,
  options: EnrollCoordinatorOptions,
): Promise<JoinResponse> {
  const { store, clock, log, events, history, readKeyFiles } = options;
  if (history.refusal !== undefined) throw new CoordinatorError("FAILED_PRECONDITION", history.refusal);
  const { stored, token } = await findToken(request, store);
  if (stored === undefined || token === undefined) throw refused(request, context, options, "WRONG_SECRET");
  const refusal = coordinatorTokenRefusal(token, request.tokenSecret, clock.nowMs());
  if (refusal !== undefined) throw refused(request, context, options, refusal);
  if (readKeyFiles === undefined) throw onlyOneCoordinator();
  const name = checkedName(request.name);
  const files = await readKeyFiles();
  const used: CoordinatorTokenRecord = { ...token, use: { name, atMs: clock.nowMs() } };
  const { succeeded } = await store.txn(
    [{ type: "mod-revision", key: stored.key, revision: stored.modRevision }],
    [{ type: "put", key: stored.key, value: encodeJsonRecord(used) }],
  );
  if (!succeeded) throw refused(request, context, options, "USED");
  const paths = files.map(({ path }) => path);
  log.warn({ event: "coordinator-joined", name, peer: context.peer, token: token.id, files: paths });
  events.record({
    ...{ namespace: "", kind: "coordinator", name, type: "Warning", reason: "CoordinatorJoined" },
    message: `a further coordinator got the keys of the cluster with the token ${token.id}, from ${context.peer}`,
  });
  return { files: [...files] };
}

async function findToken(
  { tokenId }: JoinRequest,
  store: Store,
): Promise<{ readonly stored?: StoredRecord; readonly token?: CoordinatorTokenRecord }> {
  const stored = isTokenId(tokenId) ? await store.get(coordinatorTokenKey(tokenId)) : undefined;
  if (stored === undefined) return {};
  return { stored, token: decodeJsonRecord<CoordinatorTokenRecord>(stored.key, stored.value) };
}

function checkedName(name: string): string {
  if (name.length <= MAX_NAME_LENGTH && /^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$/.test(name)) return name;
  const description = "must be a host name";
  throw new CoordinatorError("INVALID", `name: ${description}`, {
    violations: [{ field: "name", description }],
  });
}

const REFUSALS: Readonly<Record<CoordinatorTokenRefusal, string>> = {
  WRONG_SECRET: "the token is unknown or wrong: make a new one with `forage coordinator add`",
  EXPIRED: "the token has expired: make a new one with `forage coordinator add`",
  USED: "the token has been used: make a new one with `forage coordinator add`",
};

function refused(
  { name }: JoinRequest,
  context: CallContext,
  { refusals }: EnrollCoordinatorOptions,
  reason: CoordinatorTokenRefusal,
): CoordinatorError {
  refusals.note(context.peer, { coordinator: name.slice(0, MAX_NAME_LENGTH), reason });
  return new CoordinatorError("PERMISSION_DENIED", REFUSALS[reason]);
}

/** Returns the error for a cluster whose store can serve only one coordinator. */
export function onlyOneCoordinator(): CoordinatorError {
  return new CoordinatorError(
    "FAILED_PRECONDITION",
    "this coordinator keeps its store on its own disk, which no other can use: move the store to etcd first (docs/how-to/store-in-etcd.md)",
  );
}
