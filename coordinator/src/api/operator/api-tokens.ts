import type { Log } from "@forage/common/log";
import type { ApiTokenRecord } from "@forage/identity/api-token";
import { mintApiToken } from "@forage/identity/api-token";
import { isRole } from "@forage/identity/authorize";
import type * as wire from "@forage/proto/forage/operator/v1/operator";
import { CoordinatorError } from "../../errors.ts";
import { encodeJsonRecord } from "../../model/codec.ts";
import { apiTokenKey, apiTokenUseKey } from "../../model/keys.ts";
import { toTimestamp } from "../../model/timestamp.ts";
import { type Caller, callerName } from "../../rpc/caller.ts";
import type { TokenUses } from "../../rpc/token-uses.ts";
import type { ClusterView } from "../../state/cluster-view.ts";
import type { Store } from "../../store/index.ts";
import type { Clock } from "../../time/clock.ts";
import { validateApiToken } from "../validate/tokens.ts";
import { translate } from "./translate.ts";

export interface ApiTokenOptions {
  readonly store: Store;
  readonly state: ClusterView;
  readonly clock: Clock;
  readonly log: Log;
  readonly randomBytes: (count: number) => Uint8Array;
  readonly tokenUses: TokenUses;
}

/**
 * The default lifetime: a quarter. It is long enough to rotate tokens by hand, and limits how long a forgotten token is
 * valid.
 */
const DEFAULT_TTL_MS = 90 * 24 * 3600 * 1000;
/** The limit of tokens, because all of them are in memory and in the list. */
const MAX_TOKENS = 10_000;

/** Creates a token. @throws CoordinatorError INVALID, RESOURCE_EXHAUSTED. */
export async function createApiToken(
  request: wire.CreateApiTokenRequest,
  caller: Caller,
  { store, state, clock, log, randomBytes }: ApiTokenOptions,
): Promise<wire.CreateApiTokenResponse> {
  validateApiToken(request);
  const { role, namespaces, ttlSeconds, description, neverExpires } = request;
  if (!isRole(role))
    throw new CoordinatorError(
      "INVALID",
      `role "${role}" must be destination-reader, viewer, editor or admin`,
    );
  if (state.apiTokens().length >= MAX_TOKENS)
    throw new CoordinatorError(
      "RESOURCE_EXHAUSTED",
      `there are ${MAX_TOKENS} API tokens: revoke unused ones (\`forage token ls\`)`,
    );
  const ttlMs = ttlSeconds > 0n ? Number(ttlSeconds) * 1000 : DEFAULT_TTL_MS;
  const { token, record } = translate(() =>
    mintApiToken({
      description,
      grants: [{ role, namespaces: namespaces.length === 0 ? "*" : namespaces }],
      nowMs: clock.nowMs(),
      randomBytes,
      ...(!neverExpires && { ttlMs }),
    }),
  );
  const value = encodeJsonRecord(record);
  const result = await store.txn([], [{ type: "put", key: apiTokenKey(record.id), value }]);
  await state.reached(result.revision);
  log.info({ event: "api-token-created", token: record.id, role, namespaces, by: callerName(caller) });
  return { token, id: record.id, expiresAt: expiryOf(record) };
}

/** Returns the tokens, newest first. */
export async function listApiTokens({
  state,
  clock,
  tokenUses,
}: Pick<ApiTokenOptions, "state" | "clock" | "tokenUses">): Promise<wire.ListApiTokensResponse> {
  const nowMs = clock.nowMs();
  const records = state.apiTokens().map(({ record }) => record);
  records.sort((a, b) => b.createdAtMs - a.createdAtMs || (a.id < b.id ? -1 : 1));
  const tokens = records.map(async (record): Promise<wire.ApiToken> => {
    const [grant] = record.grants;
    const usedMs = await tokenUses.lastUsedMs(record.id);
    return {
      id: record.id,
      description: record.description,
      role: grant?.role ?? "",
      namespaces: grant === undefined || grant.namespaces === "*" ? [] : [...grant.namespaces],
      createdAt: toTimestamp(record.createdAtMs),
      expiresAt: expiryOf(record),
      lastUsedAt: usedMs === undefined ? undefined : toTimestamp(usedMs),
      expired: isExpired(record, nowMs),
    };
  });
  return { tokens: await Promise.all(tokens) };
}

/** Revokes a token. Its streams end within a second. @throws CoordinatorError NOT_FOUND, FAILED_PRECONDITION. */
export async function revokeApiToken(
  { id }: wire.RevokeApiTokenRequest,
  caller: Caller,
  { store, state, clock, log }: ApiTokenOptions,
): Promise<wire.RevokeApiTokenResponse> {
  const entry = state.apiToken(id);
  if (entry === undefined)
    throw new CoordinatorError(
      "NOT_FOUND",
      `there is no API token "${id.slice(0, 100)}": see \`forage token ls\``,
    );
  const nowMs = clock.nowMs();
  const admins = state
    .apiTokens()
    .filter(({ record }) => isClusterAdmin(record) && !isExpired(record, nowMs));
  if (admins.length === 1 && admins[0]?.id === id)
    throw new CoordinatorError(
      "FAILED_PRECONDITION",
      `token ${id} is the only admin token for all namespaces: create another one first (\`forage token create --role admin\`)`,
    );
  const result = await store.txn(
    [],
    [
      { type: "delete", key: apiTokenKey(id) },
      { type: "delete", key: apiTokenUseKey(id) },
    ],
  );
  await state.reached(result.revision);
  log.info({ event: "api-token-revoked", token: id, by: callerName(caller) });
  return {};
}

function expiryOf({ expiresAtMs }: ApiTokenRecord) {
  return expiresAtMs === undefined ? undefined : toTimestamp(expiresAtMs);
}

function isExpired({ expiresAtMs = Number.POSITIVE_INFINITY }: ApiTokenRecord, nowMs: number): boolean {
  return nowMs >= expiresAtMs;
}

function isClusterAdmin({ grants }: ApiTokenRecord): boolean {
  return grants.some(({ role, namespaces }) => role === "admin" && namespaces === "*");
}
