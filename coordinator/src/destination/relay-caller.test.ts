import assert from "node:assert/strict";
import { test } from "node:test";
import { nodeId } from "@forage/identity";
import { Metadata } from "@grpc/grpc-js";
import type { Caller } from "../rpc/caller.ts";
import { RELAY_NAMESPACE_KEY, relayCaller } from "./relay-caller.ts";

const node: Caller = { type: "node", nodeId: nodeId("n1") };

function grantsOf(caller: Caller, namespace?: string) {
  const metadata = new Metadata();
  if (namespace !== undefined) metadata.set(RELAY_NAMESPACE_KEY, namespace);
  const counted = relayCaller(caller, metadata, (name, its) => name === "n1" && its === "shop");
  return counted.type === "user" ? counted.grants : counted.type;
}

test("lets a node read the namespaces of its own pods, and all namespaces for its own processes", () => {
  assert.deepEqual(grantsOf(node, "shop"), [{ role: "destination-reader", namespaces: ["shop"] }]);
  assert.deepEqual(grantsOf(node, "bank"), [{ role: "destination-reader", namespaces: [] }]);
  assert.deepEqual(grantsOf(node), [{ role: "destination-reader", namespaces: "*" }]);
});

test("gives a token no further permission for a named namespace", () => {
  const grants = [{ role: "viewer", namespaces: ["bank"] }] as const;
  assert.deepEqual(grantsOf({ type: "user", name: "token:a", grants }, "shop"), grants);
  assert.equal(grantsOf({ type: "anonymous" }, "shop"), "anonymous");
});
