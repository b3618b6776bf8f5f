import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";
import { VirtualClock } from "@forage/common/virtual-clock";
import { mintApiToken } from "@forage/identity/api-token";
import type { Grant } from "@forage/identity/authorize";
import { CreateApiTokenRequest } from "@forage/proto/forage/operator/v1/operator";
import { pino } from "pino";
import type { Caller } from "../../rpc/caller.ts";
import { type ApiTokenOptions, createApiToken, revokeApiToken } from "./api-tokens.ts";

const CALLER: Caller = { type: "user", name: "test", grants: [] };
const ADMIN: Grant = { role: "admin", namespaces: "*" };
const TTL_MS = 1000;

/** Returns the options of calls to a cluster that has one token for each list of grants, and the ids of these tokens. */
function tokens(...grants: readonly (readonly Grant[])[]) {
  const clock = new VirtualClock();
  const records = grants.map(
    (its) =>
      mintApiToken({ description: "", grants: its, nowMs: clock.nowMs(), randomBytes, ttlMs: TTL_MS }).record,
  );
  const entries = records.map((record) => ({ id: record.id, record }));
  const options = {
    ...{ clock, log: pino({ level: "silent" }), randomBytes, tokenUses: undefined },
    store: { txn: async () => ({ revision: 1 }) },
    state: {
      apiTokens: () => entries,
      apiToken: (id: string) => entries.find((entry) => entry.id === id),
      reached: async () => {},
    },
  } as unknown as ApiTokenOptions;
  return { clock, options, ids: records.map(({ id }) => id) };
}

const REFUSED = { code: "FAILED_PRECONDITION", message: /the only admin token for all namespaces/ };

test("refuses to revoke the only admin token for all namespaces", async () => {
  const { ids, options } = tokens(
    [ADMIN],
    [{ role: "admin", namespaces: ["shop"] }],
    [{ role: "editor", namespaces: "*" }],
  );
  const [admin = "", ...others] = ids;
  await assert.rejects(revokeApiToken({ id: admin }, CALLER, options), REFUSED);
  for (const id of others) await revokeApiToken({ id }, CALLER, options);
});

test("revokes an admin token while another one is valid", async () => {
  const { ids, options } = tokens([ADMIN], [{ role: "viewer", namespaces: ["shop"] }, ADMIN]);
  for (const id of ids) await revokeApiToken({ id }, CALLER, options);
});

test("doesn't count an expired admin token, which can be revoked", async () => {
  const { clock, ids, options } = tokens([ADMIN]);
  clock.advance(TTL_MS);
  const [expired = ""] = ids;
  const valid = mintApiToken({ description: "", grants: [ADMIN], nowMs: clock.nowMs(), randomBytes });
  const entries = [...options.state.apiTokens(), { id: valid.record.id, record: valid.record }];
  const state = {
    ...options.state,
    apiTokens: () => entries,
    apiToken: (id: string) => entries.find((it) => it.id === id),
  };
  const later = { ...options, state } as unknown as ApiTokenOptions;
  await assert.rejects(revokeApiToken({ id: valid.record.id }, CALLER, later), REFUSED);
  await revokeApiToken({ id: expired }, CALLER, later);
});

test("refuses to create a token when there are 10,000", async () => {
  const { options } = tokens([ADMIN]);
  const [entry] = options.state.apiTokens();
  const withCount = (count: number): ApiTokenOptions => {
    const state = { ...options.state, apiTokens: () => new Array(count).fill(entry) };
    return { ...options, state } as unknown as ApiTokenOptions;
  };
  const request = CreateApiTokenRequest.fromPartial({ role: "viewer", description: "ci" });
  await createApiToken(request, CALLER, withCount(9_999));
  await assert.rejects(createApiToken(request, CALLER, withCount(10_000)), { code: "RESOURCE_EXHAUSTED" });
});
