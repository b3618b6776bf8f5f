import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";
import { nodeId } from "@forage/identity";
import { mintApiToken } from "@forage/identity/api-token";
import type { Peer } from "@forage/identity/tls-server";
import { Metadata } from "@grpc/grpc-js";
import type { Caller } from "./caller.ts";
import { identify } from "./identify.ts";

const NOW_MS = 1_000_000;
const minted = mintApiToken({
  description: "test",
  grants: [{ role: "viewer", namespaces: ["shop"] }],
  nowMs: NOW_MS,
  ttlMs: 1_000,
  randomBytes,
});
const stranger = { type: "anonymous", certificateProblem: undefined } as unknown as Peer;

test("identifies the holder of a token", () => {
  assert.deepEqual(callerWith(`Bearer ${minted.token}`), {
    type: "user",
    name: `token:${minted.record.id}`,
    grants: minted.record.grants,
    tokenId: minted.record.id,
  });
  assert.equal(callerWith(`bearer  ${minted.token}`).type, "user");
});

test("reports whether a token is expired, wrong, unknown or malformed", () => {
  const wrong = `${minted.token.slice(0, -1)}${minted.token.endsWith("A") ? "B" : "A"}`;
  const unknown = minted.token.replace(minted.record.id, "000000000000");
  for (const [header, problem, atMs] of [
    [`Bearer ${minted.token}`, /expired/, NOW_MS + 1_000],
    [`Bearer ${unknown}`, /unknown or was revoked/, NOW_MS],
    [`Basic ${minted.token}`, /no token of the form/, NOW_MS],
    [minted.token, /no token of the form/, NOW_MS],
    ["Bearer", /no token of the form/, NOW_MS],
    ["Bearer x", /no token of the form/, NOW_MS],
    [`Bearer ${minted.token} x`, /no token of the form/, NOW_MS],
    ["", /no token of the form/, NOW_MS],
  ] as const) {
    const caller = callerWith(header, stranger, atMs);
    assert.ok(caller.type === "anonymous", header);
    assert.match(caller.problem ?? "", problem);
    assert.doesNotMatch(caller.problem ?? "", new RegExp(minted.token.slice(-20)), "no secret is repeated");
  }
  const caller = callerWith(`Bearer ${wrong}`);
  assert.ok(caller.type === "anonymous");
});

test("gives unknown ids and wrong secrets the same answer", () => {
  const other = mintApiToken({ description: "", grants: minted.record.grants, nowMs: NOW_MS, randomBytes });
  const wrongSecret = `flt_${minted.record.id}_${other.token.slice(-43)}`;
  assert.deepEqual(callerWith(`Bearer ${wrongSecret}`), callerWith(`Bearer ${other.token}`));
});

test("identifies a caller without a token by its certificate", () => {
  const peer = {
    type: "authenticated",
    identity: { type: "node", nodeId: nodeId("n1"), serial: "01" },
  } as unknown as Peer;
  assert.deepEqual(identify(new Metadata(), peer, options()), {
    type: "node",
    nodeId: "n1",
    serial: "01",
  });
});

test("prefers the token to the certificate, even if the token is wrong", () => {
  const peer = {
    type: "authenticated",
    identity: { type: "node", nodeId: nodeId("n1"), serial: "01" },
  } as unknown as Peer;
  assert.equal(callerWith(`Bearer ${minted.token}`, peer).type, "user");
  assert.equal(callerWith("Bearer x", peer).type, "anonymous");
});

test("treats a caller without credentials as anonymous, and reports a problem with its certificate", () => {
  assert.deepEqual(identify(new Metadata(), stranger, options()), { type: "anonymous" });
  const refused = { type: "anonymous", certificateProblem: "REVOKED" } as unknown as Peer;
  const caller = identify(new Metadata(), refused, options());
  assert.ok(caller.type === "anonymous");
  assert.match(
    caller.problem ?? "",
    /its node was removed or has joined again since; to join again put what/,
  );
  const machine = { type: "authenticated", identity: { type: "server" } } as unknown as Peer;
  assert.equal(identify(new Metadata(), machine, options()).type, "anonymous");
});

function callerWith(header: string, peer: Peer = stranger, atMs = NOW_MS): Caller {
  const metadata = new Metadata();
  metadata.set("authorization", header);
  return identify(metadata, peer, options(atMs));
}

function options(atMs = NOW_MS) {
  const entry = { id: minted.record.id, revision: 1, record: minted.record };
  return { findToken: (id: string) => (id === entry.id ? entry : undefined), nowMs: () => atMs };
}
