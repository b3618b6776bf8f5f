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
const stranger = { kind: "anonymous", certificateProblem: undefined } as unknown as Peer;

test("a token speaks for its holder", () => {
  assert.deepEqual(callerWith(`Bearer ${minted.token}`), {
    kind: "user",
    name: `token:${minted.record.id}`,
    grants: minted.record.grants,
    tokenId: minted.record.id,
  });
  assert.equal(callerWith(`bearer  ${minted.token}`).kind, "user");
});

test("one that has expired, is wrong, unknown or no token at all doesn't, and it says which", () => {
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
    assert.ok(caller.kind === "anonymous", header);
    assert.match(caller.problem ?? "", problem);
    assert.doesNotMatch(caller.problem ?? "", new RegExp(minted.token.slice(-20)), "no secret is repeated");
  }
  const caller = callerWith(`Bearer ${wrong}`);
  assert.ok(caller.kind === "anonymous");
});

test("unknown ids and wrong secrets get the same answer", () => {
  const other = mintApiToken({ description: "", grants: minted.record.grants, nowMs: NOW_MS, randomBytes });
  const wrongSecret = `flt_${minted.record.id}_${other.token.slice(-43)}`;
  assert.deepEqual(callerWith(`Bearer ${wrongSecret}`), callerWith(`Bearer ${other.token}`));
});

test("without a token the certificate speaks", () => {
  const peer = {
    kind: "authenticated",
    identity: { kind: "node", nodeId: nodeId("n1"), serial: "01" },
  } as unknown as Peer;
  assert.deepEqual(identify(new Metadata(), peer, options()), {
    kind: "node",
    nodeId: "n1",
    serial: "01",
  });
});

test("a token goes before the certificate, also when it is wrong", () => {
  const peer = {
    kind: "authenticated",
    identity: { kind: "node", nodeId: nodeId("n1"), serial: "01" },
  } as unknown as Peer;
  assert.equal(callerWith(`Bearer ${minted.token}`, peer).kind, "user");
  assert.equal(callerWith("Bearer x", peer).kind, "anonymous");
});

test("a caller without credentials is anonymous, and a certificate's fault is reported", () => {
  assert.deepEqual(identify(new Metadata(), stranger, options()), { kind: "anonymous" });
  const refused = { kind: "anonymous", certificateProblem: "REVOKED" } as unknown as Peer;
  const caller = identify(new Metadata(), refused, options());
  assert.ok(caller.kind === "anonymous");
  assert.match(
    caller.problem ?? "",
    /its node was removed or has joined again since; to join again put what/,
  );
  const machine = { kind: "authenticated", identity: { kind: "server" } } as unknown as Peer;
  assert.equal(identify(new Metadata(), machine, options()).kind, "anonymous");
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
