import assert from "node:assert/strict";
import { test } from "node:test";
import { aServiceEntry } from "../../test/support/entries.ts";
import { HandFedState } from "../../test/support/hand-fed-state.ts";
import { ObjectFaults } from "../faults/object-faults.ts";
import { BuiltInServices } from "../model/built-in-service.ts";
import { RouteIndex } from "./route-index.ts";

test("routes to a built-in service until a service of the same name is applied", () => {
  const { state, put, service } = newState();
  const builtIn = new BuiltInServices([{ namespace: "shop", name: "own", port: 8_443, addresses: [] }]);
  const routes = new RouteIndex(state, new ObjectFaults({ loop: "gateway" }), builtIn);
  const ports = (name: string) => routes.portsOf("shop", name)?.map(({ port }) => port);
  assert.deepEqual([ports("own"), ports("other")], [[8_443], undefined]);
  put();
  assert.deepEqual(ports("own"), [80]);
  assert.equal(routes.follow({ type: "resource", before: undefined, after: service }), true);
});

function newState() {
  const fed = new HandFedState({});
  const service = aServiceEntry({ name: "own" });
  return { service, state: fed.state, put: () => fed.put({ resources: [service] }) };
}
