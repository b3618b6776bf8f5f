import assert from "node:assert/strict";
import { test } from "node:test";
import { NodeRecord } from "@forage/proto/forage/store/v1/store";
import { pino } from "pino";
import { encodeRecord } from "../model/codec.ts";
import { nodeKey } from "../model/keys.ts";
import { ClusterView } from "../state/cluster-view.ts";
import { createMemoryStore, type Store } from "../store/index.ts";
import { systemClock } from "../time/clock.ts";
import { StartGate } from "./start-gate.ts";

const ready = { ready: true, message: "", lastSeenMs: undefined };

test("delays writes until each Ready node has connected, and logs these nodes", async (t) => {
  const { gate, state, store, write, lines } = await setUp(t, ["a", "b"]);
  const written = write();
  state.setNodeHealth("a", { ...ready, lastSeenMs: 1 }, false);
  gate.check();
  assert.equal(store.revision, 0);
  state.setNodeHealth("b", { ...ready, ready: false }, true);
  assert.equal((await written).succeeded, true);
  assert.equal(gate.isOver, true);
  assert.deepEqual(
    lines.map((line) => JSON.parse(line)).map(({ event, nodes }) => [event, nodes]),
    [
      ["decisions-delayed", ["a", "b"]],
      ["decisions-begin", undefined],
    ],
  );
});

test("delays no writes if no node is expected", async (t) => {
  const { gate, write, lines } = await setUp(t, []);
  assert.equal(gate.isOver, true);
  assert.equal((await write()).succeeded, true);
  assert.equal(lines.length, 1);
});

test("delays no writes if the store is known to be current", async (t) => {
  const { gate, write } = await setUp(t, ["a"], true);
  assert.equal(gate.isOver, true);
  assert.equal((await write()).succeeded, true);
});

test("fails pending and later writes with the reason when the gate closes", async (t) => {
  const { gate, store, write } = await setUp(t, ["a"]);
  const written = write();
  gate.close("the coordinator stops");
  await assert.rejects(written, /the coordinator stops/);
  await assert.rejects(write(), /the coordinator stops/);
  assert.equal(store.revision, 0);
});

test("checks only the node that has connected", async (t) => {
  const nodes = Array.from({ length: 200 }, (_, index) => `n${index}`);
  const { gate, state } = await setUp(t, nodes);
  const all = t.mock.method(state, "nodes");
  const single = t.mock.method(state, "node");
  for (const name of nodes.toReversed()) {
    state.setNodeHealth(name, { ...ready, lastSeenMs: 1 }, true);
    gate.check();
  }
  assert.equal(gate.isOver, true);
  assert.equal(all.mock.callCount(), 0);
  assert.ok(single.mock.callCount() <= 3 * nodes.length, `${single.mock.callCount()} nodes were read`);
});

test("also waits for a node that becomes Ready before the others have connected", async (t) => {
  const { gate, state } = await setUp(t, ["a", "b"]);
  state.setNodeHealth("a", { ...ready, ready: false }, true);
  state.setNodeHealth("a", ready, true);
  state.setNodeHealth("b", { ...ready, lastSeenMs: 1 }, true);
  assert.equal(gate.isOver, false);
  state.setNodeHealth("a", { ...ready, lastSeenMs: 1 }, true);
  assert.equal(gate.isOver, true);
});

async function setUp(
  t: { after(run: () => Promise<void>): void },
  nodes: readonly string[],
  isProven = false,
) {
  const store: Store = createMemoryStore({ clock: systemClock });
  t.after(() => store.close());
  const state = new ClusterView();
  for (const name of nodes) {
    const record = {
      ...{ key: nodeKey(name), createRevision: 1, modRevision: 1, version: 1 },
      value: encodeRecord(NodeRecord, NodeRecord.fromPartial({ name })),
    };
    state.apply([{ type: "put", record }], 1);
    state.setNodeHealth(name, ready, false);
  }
  const lines: string[] = [];
  const gate = new StartGate(state, pino({}, { write: (line: string) => void lines.push(line) }), isProven);
  const write = () => gate.gated(store).txn([], [{ type: "put", key: "k", value: new Uint8Array() }]);
  return { gate, state, store, write, lines };
}
