import assert from "node:assert/strict";
import { test } from "node:test";
import { VirtualClock } from "@forage/common/virtual-clock";
import type { ApiTokenRecord } from "@forage/identity/api-token";
import { HandFedState } from "../../test/support/hand-fed-state.ts";
import { encodeJsonRecord } from "../model/codec.ts";
import { apiTokenKey } from "../model/keys.ts";
import type { Caller } from "./caller.ts";
import { TokenWatch } from "./token-watch.ts";

const HOUR_MS = 3_600_000;

function scene() {
  const clock = new VirtualClock();
  const fed = new HandFedState();
  const watch = new TokenWatch({ ...clock, findToken: (id) => fed.state.apiToken(id) });
  fed.state.subscribe((changes) => {
    for (const change of changes) if (change.type === "api-token") watch.changed(change);
  });
  const put = (id: string, ttlMs?: number): void => {
    const record: ApiTokenRecord = {
      id,
      secretHash: "",
      description: "",
      grants: [{ role: "viewer", namespaces: "*" }],
      createdAtMs: 0,
      ...(ttlMs !== undefined && { expiresAtMs: clock.nowMs() + ttlMs }),
    };
    fed.write({ type: "put", key: apiTokenKey(id), value: encodeJsonRecord(record) });
  };
  const lapsed: string[] = [];
  const open = (id: string, stream: string): (() => void) => {
    const caller: Caller = { type: "user", name: id, grants: [], tokenId: id };
    return watch.watch(caller, ({ message }) => lapsed.push(`${stream}: ${message}`));
  };
  return { clock, fed, watch, put, lapsed, open };
}

test("ends exactly the streams of a revoked token with the write that revokes it", () => {
  const { clock, fed, put, lapsed, open } = scene();
  put("a");
  put("b");
  for (const stream of ["1", "2"]) open("a", stream);
  open("b", "3");
  fed.remove(apiTokenKey("a"));
  assert.deepEqual(lapsed, ["1: the token was revoked", "2: the token was revoked"]);
  fed.remove(apiTokenKey("b"));
  assert.equal(lapsed.length, 3);
  assert.equal(clock.pending, 0);
});

test("leaves no timer for a token that is revoked before it expires", () => {
  const { clock, fed, put, lapsed, open } = scene();
  put("a", HOUR_MS);
  open("a", "1");
  assert.equal(clock.pending, 1);
  fed.remove(apiTokenKey("a"));
  assert.deepEqual([lapsed.length, clock.pending], [1, 0]);
});

test("ends streams at the millisecond at which their token expires", () => {
  const { clock, put, lapsed, open } = scene();
  put("a", 2 * HOUR_MS);
  put("b", HOUR_MS);
  put("c");
  for (const id of ["a", "b", "c"]) open(id, id);
  clock.advance(HOUR_MS - 1);
  assert.deepEqual(lapsed, []);
  clock.advance(1);
  assert.deepEqual(lapsed, ["b: the token has expired"]);
  clock.advance(HOUR_MS);
  assert.deepEqual(lapsed, ["b: the token has expired", "a: the token has expired"]);
  assert.equal(clock.pending, 0, "a token without an end needs no timer");
});

test("detects a shortened lifetime of a token and a wall clock that was set forward", () => {
  const { clock, put, lapsed, open } = scene();
  put("a");
  put("b", 10 * HOUR_MS);
  open("a", "a");
  open("b", "b");
  put("a", 1_000);
  clock.advance(1_000);
  assert.deepEqual(lapsed, ["a: the token has expired"]);
  clock.jumpWall(10 * HOUR_MS);
  clock.advance(10_000);
  assert.deepEqual(lapsed, ["a: the token has expired", "b: the token has expired"]);
});

test("does not call back for an ended stream, and keeps no entry of it", () => {
  const { clock, fed, put, lapsed, open } = scene();
  put("a", HOUR_MS);
  const [first, second] = [open("a", "1"), open("a", "2")];
  first();
  first();
  assert.equal(clock.pending, 1);
  second();
  assert.equal(clock.pending, 0);
  fed.remove(apiTokenKey("a"));
  clock.advance(HOUR_MS);
  assert.deepEqual(lapsed, []);
});
