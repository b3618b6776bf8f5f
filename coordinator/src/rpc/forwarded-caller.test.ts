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
const NODE: Caller = { kind: "node", nodeId: n1, serial: "a1" };
const FIELDS = { cluster: "home", serial: "b2", notBeforeMs: 0, notAfterMs: 1 };

test("a forwarded caller is the caller that was described", () => {
  const anonymous = { kind: "anonymous", forwarded: true } as const;
  const callers: readonly (readonly [Caller, Caller])[] = [
    [NODE, NODE],
    [{ kind: "anonymous" }, anonymous],
    [
      { kind: "anonymous", problem: "expired", expiredNode: { nodeId: n1, serial: "a1" } },
      { ...anonymous, problem: "expired", expiredNode: { nodeId: n1, serial: "a1" } },
    ],
    [
      { kind: "anonymous", problem: "removed", refusedNode: n1 },
      { ...anonymous, problem: "removed", refusedNode: n1 },
    ],
  ];
  for (const [caller, expected] of callers)
    assert.deepEqual(forwardedCaller(headers(encodeCaller(caller) ?? ""), "c2"), expected);
});

test("a caller with a token is not described, because the token is passed on", () => {
  assert.equal(encodeCaller({ kind: "user", name: "token:x", grants: [] }), undefined);
});

test("a description that can't be read makes an anonymous caller", () => {
  for (const text of [
    "",
    "{",
    "7",
    "null",
    '{"node":"n1"}',
    '{"node":"../x","serial":"a1"}',
    '{"node":7,"serial":"a"}',
  ]) {
    const { kind } = forwardedCaller(headers(text), "c2");
    assert.equal(kind, "anonymous", text);
  }
});

test("only a coordinator's certificate lets a call speak for another caller", () => {
  const metadata = headers(encodeCaller(NODE) ?? "");
  assert.deepEqual(callerOf(metadata, { kind: "coordinator", name: "c2" }), NODE);
  assert.deepEqual(callerOf(metadata, { kind: "node", nodeId: nodeId("n2") }), {
    kind: "node",
    nodeId: "n2",
    serial: "b2",
  });
  assert.equal(callerOf(metadata, { kind: "client", name: "ci" }).kind, "anonymous");
  const own = callerOf(new Metadata(), { kind: "coordinator", name: "c2" });
  assert.deepEqual([own.kind, own.coordinator], ["anonymous", "c2"]);
  assert.equal(callerOf(metadata, { kind: "coordinator", name: "c2" }).coordinator, undefined);
  const stranger = { kind: "anonymous", remoteAddress: "192.0.2.1:1" } as const;
  assert.equal(identify(metadata, stranger, OPTIONS).kind, "anonymous");
});

test("the address of a client is the one that a coordinator with its certificate describes", () => {
  const addressOf = (header: string, identity: object): string => {
    const metadata = new Metadata();
    metadata.set(FORWARDED_PEER_KEY, header);
    return clientAddress(metadata, authenticated(identity), "192.0.2.1:1");
  };
  const follower = { kind: "coordinator", name: "c2" };
  for (const address of ["198.51.100.7:4000", "[2001:db8::7]:4000", "::ffff:198.51.100.7:4000"])
    assert.equal(addressOf(address, follower), address);
  for (const header of ["", "a b", "x".repeat(101), '{"a":1}'])
    assert.equal(addressOf(header, follower), "192.0.2.1:1", header);
  const others = [
    { kind: "node", nodeId: nodeId("n2") },
    { kind: "client", name: "ci" },
  ];
  for (const identity of others) assert.equal(addressOf("198.51.100.7:4000", identity), "192.0.2.1:1");
});

const OPTIONS = { findToken: () => undefined, nowMs: () => 0 };

function callerOf(metadata: Metadata, identity: object): Caller {
  return identify(metadata, authenticated(identity), OPTIONS);
}

function authenticated(identity: object): Peer {
  const peer = { kind: "authenticated", identity: { ...FIELDS, ...identity }, remoteAddress: "192.0.2.1:1" };
  return peer as Peer;
}

function headers(caller: string): Metadata {
  const metadata = new Metadata();
  metadata.set(FORWARDED_CALLER_KEY, caller);
  return metadata;
}
