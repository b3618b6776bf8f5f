import assert from "node:assert/strict";
import { test } from "node:test";
import { nodeId } from "@forage/identity";
import type { Peer } from "@forage/identity/tls-server";
import { Metadata } from "@grpc/grpc-js";
import type { Caller } from "./caller.ts";
import {
  encodeCaller,
  FORWARDED_CALLER_KEY,
  FORWARDED_PEER_KEY,
  forwardedCaller,
} from "./forwarded-caller.ts";
import { clientAddress, identify } from "./identify.ts";

const n1 = nodeId("n1");
const NODE: Caller = { type: "node", nodeId: n1, serial: "a1" };
const FIELDS = { cluster: "home", serial: "b2", notBeforeMs: 0, notAfterMs: 1 };

test("decodes a forwarded caller as it was encoded", () => {
  const anonymous = { type: "anonymous", forwarded: true } as const;
  const callers: readonly (readonly [Caller, Caller])[] = [
    [NODE, NODE],
    [{ type: "anonymous" }, anonymous],
    [
      { type: "anonymous", problem: "expired", expiredNode: { nodeId: n1, serial: "a1" } },
      { ...anonymous, problem: "expired", expiredNode: { nodeId: n1, serial: "a1" } },
    ],
    [
      { type: "anonymous", problem: "removed", refusedNode: n1 },
      { ...anonymous, problem: "removed", refusedNode: n1 },
    ],
  ];
  for (const [caller, expected] of callers)
    assert.deepEqual(forwardedCaller(headers(encodeCaller(caller) ?? ""), "c2"), expected);
});

test("does not encode a caller with a token, because the token is passed on", () => {
  assert.equal(encodeCaller({ type: "user", name: "token:x", grants: [] }), undefined);
});

test("treats an unreadable encoding as an anonymous caller", () => {
  for (const text of [
    "",
    "{",
    "7",
    "null",
    '{"node":"n1"}',
    '{"node":"../x","serial":"a1"}',
    '{"node":7,"serial":"a"}',
  ]) {
    const { type } = forwardedCaller(headers(text), "c2");
    assert.equal(type, "anonymous", text);
  }
});

test("accepts a forwarded caller only from a coordinator's certificate", () => {
  const metadata = headers(encodeCaller(NODE) ?? "");
  assert.deepEqual(callerOf(metadata, { type: "coordinator", name: "c2" }), NODE);
  assert.deepEqual(callerOf(metadata, { type: "node", nodeId: nodeId("n2") }), {
    type: "node",
    nodeId: "n2",
    serial: "b2",
  });
  assert.equal(callerOf(metadata, { type: "client", name: "ci" }).type, "anonymous");
  const own = callerOf(new Metadata(), { type: "coordinator", name: "c2" });
  assert.deepEqual([own.type, own.coordinator], ["anonymous", "c2"]);
  assert.equal(callerOf(metadata, { type: "coordinator", name: "c2" }).coordinator, undefined);
  const stranger = { type: "anonymous", remoteAddress: "192.0.2.1:1" } as const;
  assert.equal(identify(metadata, stranger, OPTIONS).type, "anonymous");
});

test("accepts a client's address only from a coordinator's certificate", () => {
  const addressOf = (header: string, identity: object): string => {
    const metadata = new Metadata();
    metadata.set(FORWARDED_PEER_KEY, header);
    return clientAddress(metadata, authenticated(identity), "192.0.2.1:1");
  };
  const follower = { type: "coordinator", name: "c2" };
  for (const address of ["198.51.100.7:4000", "[2001:db8::7]:4000", "::ffff:198.51.100.7:4000"])
    assert.equal(addressOf(address, follower), address);
  for (const header of ["", "a b", "x".repeat(101), '{"a":1}'])
    assert.equal(addressOf(header, follower), "192.0.2.1:1", header);
  const others = [
    { type: "node", nodeId: nodeId("n2") },
    { type: "client", name: "ci" },
  ];
  for (const identity of others) assert.equal(addressOf("198.51.100.7:4000", identity), "192.0.2.1:1");
});

const OPTIONS = { findToken: () => undefined, nowMs: () => 0 };

function callerOf(metadata: Metadata, identity: object): Caller {
  return identify(metadata, authenticated(identity), OPTIONS);
}

function authenticated(identity: object): Peer {
  const peer = { type: "authenticated", identity: { ...FIELDS, ...identity }, remoteAddress: "192.0.2.1:1" };
  return peer as Peer;
}

function headers(caller: string): Metadata {
  const metadata = new Metadata();
  metadata.set(FORWARDED_CALLER_KEY, caller);
  return metadata;
}
