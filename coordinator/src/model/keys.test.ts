import assert from "node:assert/strict";
import { test } from "node:test";
import { VirtualClock } from "@forage/common/virtual-clock";
import { createMemoryStore } from "../store/index.ts";
import {
  apiTokenKey,
  applyKey,
  joinTokenKey,
  nodeKey,
  PREFIXES,
  podKey,
  reportKey,
  resourceKey,
  rolloutKey,
  statusKey,
} from "./keys.ts";

const longest = "x".repeat(63);

test("no prefix of a kind of record is the beginning of another", () => {
  const all = Object.values(PREFIXES);
  for (const a of all) for (const b of all) assert.ok(a === b || !a.startsWith(b), `${a} ${b}`);
});

test("keys with the longest names, and with apply ids of any text, are valid", async () => {
  const store = createMemoryStore({ clock: new VirtualClock() });
  const keys = [
    resourceKey(longest, "container_service", longest),
    podKey(longest, longest),
    statusKey(longest, longest),
    nodeKey(longest),
    reportKey(longest),
    rolloutKey("r-1"),
    joinTokenKey("1"),
    apiTokenKey("1"),
    applyKey(longest, "😀".repeat(64)),
    applyKey(longest, "\0\n/%".repeat(64)),
    applyKey("shop", "../../nodes/n1"),
  ];
  const value = new Uint8Array(0);
  const { succeeded } = await store.txn(
    [],
    keys.map((key) => ({ type: "put", key, value })),
  );
  assert.ok(succeeded);
  await store.close();
});

test("different apply ids have different keys", () => {
  const keys = ["a/b", "a%2Fb", "a b", "a+b"].map((id) => applyKey("shop", id));
  assert.equal(new Set(keys).size, keys.length);
  assert.notEqual(applyKey("a", "b/c"), applyKey("a/b", "c"));
});
