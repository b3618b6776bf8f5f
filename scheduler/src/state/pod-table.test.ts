import assert from "node:assert/strict";
import { test } from "node:test";
import { aNode, aPod } from "../../test/builders/fleet.ts";
import { FleetState } from "./fleet-state.ts";

test("reuses the numbers of removed pods, so that a fleet whose pods come and go doesn't grow", () => {
  const state = new FleetState();
  state.setNode(aNode("n1"));
  const node = state.nodes.indexOf.get("n1") ?? -1;
  const podClass = state.classOf(aPod("web"));
  const bind = (name: string) => state.bind(`default/${name}`, podClass, node);
  const [first, second] = [bind("a"), bind("b")];
  const capacity = state.pods.node.length;
  for (let round = 0; round < 2 * capacity; round++) {
    state.unbind(second);
    assert.equal(bind(`c${round}`), second);
    state.unbind(first);
    assert.equal(bind(`d${round}`), first);
    state.unbind(second);
    assert.equal(bind("b"), second);
    state.unbind(first);
    assert.equal(bind("a"), first);
  }
  assert.equal(state.pods.node.length, capacity);
  assert.deepEqual([...state.pods.indexOf.keys()].sort(), ["default/a", "default/b"]);
});
