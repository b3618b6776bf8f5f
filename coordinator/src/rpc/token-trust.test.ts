import assert from "node:assert/strict";
import { test } from "node:test";
import { Metadata } from "@grpc/grpc-js";
import type { Caller } from "./caller.ts";
import { TokenTrust } from "./token-trust.ts";

const USER: Caller = { type: "user", name: "token:a", grants: [], tokenId: "a" };
const NODE: Caller = { type: "node", nodeId: "n1" as never, serial: "a1" };
const REFUSAL = {
  code: "UNAVAILABLE",
  message:
    "this coordinator has received no answer from etcd for 31 s, so the token may have been revoked: use another coordinator, or try again (store.etcd.trustTokensSeconds is 30)",
};

test("refuses tokens once etcd has not answered for the configured time, and accepts them again after an answer", () => {
  const world = aWorld();
  for (const [silentMs, isAccepted] of [
    [0, true],
    [30_000, true],
    [31_000, false],
    [500, true],
  ] as const) {
    world.silentMs = silentMs;
    if (isAccepted) {
      assert.equal(world.identify(USER), USER);
      assert.deepEqual(world.findToken("a"), world.entry);
    } else {
      assert.throws(() => world.identify(USER), REFUSAL);
      assert.throws(() => world.findToken("a"), REFUSAL);
    }
  }
});

test("allows nodes and callers without a token, and keeps an unknown token unknown", () => {
  const world = aWorld();
  world.silentMs = 1e9;
  assert.equal(world.identify(NODE), NODE);
  assert.deepEqual(world.identify({ type: "anonymous" }), { type: "anonymous" });
  assert.equal(world.findToken("b"), undefined);
});

function aWorld() {
  const entry = { id: "a", revision: 1, record: {} as never };
  const world = {
    silentMs: 0,
    entry,
    identify: (caller: Caller) => trust.identifying(() => caller)(call),
    findToken: (id: string) => tokens.findToken(id),
  };
  const config = { store: { etcd: { endpoints: [], prefix: "/forage/", trustTokensSeconds: 30 } } };
  const trust = new TokenTrust({ config, silentMs: () => world.silentMs });
  const call = { metadata: new Metadata(), getPeer: () => "" } as never;
  const tokens = trust.finding({
    findToken: (id) => (id === "a" ? entry : undefined),
    nowMs: () => 0,
  });
  return world;
}
