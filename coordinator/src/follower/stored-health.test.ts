import assert from "node:assert/strict";
import { test } from "node:test";
import { aNode } from "../../test/support/entries.ts";
import { HandFedState } from "../../test/support/hand-fed-state.ts";
import { opsOf } from "../../test/support/view.ts";
import { nodeKey } from "../model/keys.ts";
import { toTimestamp } from "../model/timestamp.ts";
import { showStoredHealth } from "./stored-health.ts";

const NAMES = ["n1", "n2", "n3", "n4"];

test("treats nodes as ready unless the leader has stored their loss", () => {
  const { fed, run, ready } = start();
  assert.deepEqual(ready(), NAMES);
  put(fed, ["n2"]);
  run();
  assert.deepEqual(ready(), ["n1", "n3", "n4"]);
  assert.equal(fed.state.node("n2")?.health.kept, undefined);
  put(fed, []);
  run();
  assert.deepEqual(ready(), NAMES);
});

test("keeps endpoints while most nodes are lost", () => {
  const { fed, run, ready } = start();
  put(fed, ["n1", "n2", "n3"]);
  run();
  assert.deepEqual(ready(), ["n4"]);
  assert.equal(fed.state.node("n1")?.health.kept, true);
});

test("shows a joining node, ignores a removed one, and shows nothing after the end", () => {
  const { fed, run, stop } = start();
  put(fed, [], ["n5"]);
  fed.remove(nodeKey("n1"));
  run();
  assert.equal(fed.state.node("n5")?.health.ready, true);
  put(fed, ["n5"], ["n5"]);
  stop();
  run();
  assert.equal(fed.state.node("n5")?.health.ready, true);
});

function start() {
  const fed = new HandFedState();
  put(fed, []);
  const due: (() => void)[] = [];
  const stop = showStoredHealth({
    state: fed.state,
    monotonicMs: () => 1_000,
    recoveryMs: 0,
    defer: (run) => due.push(run),
  });
  const run = (): void => {
    for (const task of due.splice(0)) task();
  };
  const ready = (): string[] =>
    fed.state
      .nodes()
      .filter(({ health }) => health.ready)
      .map(({ name }) => name);
  return { fed, run, ready, stop };
}

/** Stores the nodes like the leader: with the time of their loss, and without their health. */
function put(fed: HandFedState, lost: readonly string[], more: readonly string[] = []): void {
  const nodes = [...NAMES, ...more].map((name) => {
    const node = aNode({ name });
    if (lost.includes(name)) node.record.unreachableSince = toTimestamp(1_000);
    return node;
  });
  fed.write(...opsOf({ nodes }));
}
