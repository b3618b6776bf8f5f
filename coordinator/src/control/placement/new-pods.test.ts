import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { PodTemplate } from "@forage/proto/forage/agent/v1/agent";
import type { PodRecord } from "@forage/proto/forage/store/v1/store";
import { pino } from "pino";
import { aNode, aPod, aWorkloadEntry } from "../../../test/support/entries.ts";
import { settled, until } from "../../../test/support/until.ts";
import { aView, type Contents, opsOf } from "../../../test/support/view.ts";
import { toTimestamp } from "../../model/timestamp.ts";
import { type Store, StoreError } from "../../store/index.ts";
import { WorkloadController } from "../workload/controller.ts";
import { PlacementController } from "./controller.ts";
import { UnschedulablePods } from "./unschedulable-pods.ts";

const LIMIT = { timeout: 120_000 };

test("creates the pods of a workload on their nodes with one write for each pod", LIMIT, async (t) => {
  const { state, written } = await aControl(t, { nodes: [node("n1", "2"), node("n2", "2")] }, 4);
  await until("all are placed", () => state.pods().filter(({ record }) => record.node !== "").length === 4);
  assert.deepEqual(state.podsOnNode("n1").length, 2);
  assert.deepEqual(written("pods/").length, 4);
  assert.ok(state.pods().every(({ record }) => record.boundAt !== undefined));
});

test("binds pods of one time in the order of their names, as after a restart", LIMIT, async (t) => {
  const { state, written } = await aControl(t, { nodes: [node("n1", "8")] }, 5);
  await until("all are placed", () => state.podsOnNode("n1").length === 5);
  const keys = written("pods/");
  assert.deepEqual(keys, [...keys].sort());
});

test("creates pods that fit no node without one, and places them once there is room", LIMIT, async (t) => {
  const { state, store } = await aControl(t, { nodes: [node("n1", "2")] }, 3);
  await until("two are placed", () => state.podsOnNode("n1").length === 2);
  await until("one waits", () => state.unboundPods().length === 1);
  await store.txn([], opsOf({ nodes: [node("n2", "2")] }));
  state.setNodeHealth("n2", node("n2", "2").health, true);
  await until("it is placed", () => state.podsOnNode("n2").length === 1);
});

test("gives back the room of pods whose write fails", LIMIT, async (t) => {
  const { state, clock, written } = await aControl(t, { nodes: [node("n1", "3")] }, 3, { failures: 2 });
  await until("the write fails twice", () => {
    clock.advance(1_000);
    return state.podsOnNode("n1").length === 3;
  });
  assert.equal(written("pods/").length, 3);
});

test("places no new pod before a more important one that waits for room", LIMIT, async (t) => {
  const { place, important, store, state } = await withWaiting(t);
  assert.equal(place("small", "1"), "n1", "nothing has changed for the pod that waits");
  const [filler] = state.podsOnNode("n1");
  const placed: (string | undefined)[] = [];
  t.after(state.subscribe(() => void placed.push(place(`late-${placed.length}`, "1"))));
  await store.txn([], [{ type: "delete", key: filler?.key ?? "" }]);
  await until("it has its place", () => state.pod("shop", important)?.record.node === "n1");
  assert.deepEqual([...new Set(placed)], [undefined]);
});

test("places no new pod before a pod that was just created", LIMIT, async (t) => {
  const { place, store, state } = await aPlacement(t, { nodes: [node("n1", "4")] });
  const placed: (string | undefined)[] = [];
  t.after(state.subscribe(() => void placed.push(place(`late-${placed.length}`, "1"))));
  const pod = aPod({ name: "earlier", node: "" });
  await store.txn([], opsOf({ pods: [{ ...pod, record: asking(pod.record, "4") }] }));
  await until("it has its place", () => state.pod("shop", "earlier")?.record.node === "n1");
  assert.deepEqual([...new Set(placed)], [undefined]);
});

test("tries waiting pods again when places are released", LIMIT, async (t) => {
  const { newPods, unschedulable, store, state } = await aPlacement(t, { nodes: [node("n1", "4")] });
  assert.equal(newPods.place(asking(aPod({ name: "open", node: "" }).record, "4"))?.node, "n1");
  const pod = aPod({ name: "waiting", node: "" });
  await store.txn([], opsOf({ pods: [{ ...pod, record: asking(pod.record, "1") }] }));
  await until("it waits", () => unschedulable.get(pod.record.uid) !== undefined);
  newPods.release();
  await until("it has its place", () => state.pod("shop", "waiting")?.record.node === "n1");
});

test(
  "keeps the places of pods that are written, whether or not the view contains them yet",
  LIMIT,
  async (t) => {
    const { newPods, place, store, state } = await aPlacement(t, { nodes: [node("n1", "4")] });
    assert.equal(place("confirmed", "2"), "n1");
    newPods.release();
    const pod = aPod({ name: "unconfirmed", node: "" });
    const record = newPods.place(asking(pod.record, "1")) ?? pod.record;
    const { revision } = await store.txn([], opsOf({ pods: [{ ...pod, record }] }));
    await state.reached(revision);
    newPods.release();
    assert.equal(place("too-large", "2"), undefined);
    assert.equal(place("last", "1"), "n1");
  },
);

test("leaves a pod that can't be evaluated to the queue", LIMIT, async (t) => {
  const { place } = await aPlacement(t, { nodes: [node("n1", "8")] });
  assert.equal(place("poison", "a lot"), undefined);
  assert.equal(place("next", "1"), "n1");
});

test("does not place a pod whose name is taken", LIMIT, async (t) => {
  const pod = aPod({ name: "same", node: "n1" });
  const there = { ...pod, record: asking(pod.record, "4") };
  const { place } = await aPlacement(t, { nodes: [node("n1", "8")], pods: [there] });
  assert.equal(place("same", "1"), undefined);
  assert.equal(place("too-large", "5"), undefined);
  assert.equal(place("other", "4"), "n1");
});

test("avoids the node that another pod of the workload leaves", LIMIT, async (t) => {
  const pod = aPod({ name: "old", node: "n1" });
  const leaving = { ...pod, record: { ...pod.record, drainingSince: toTimestamp(1) } };
  const { place } = await aPlacement(t, { nodes: [node("n1", "8"), node("n2", "8")], pods: [leaving] });
  for (const name of ["a", "b", "c"]) assert.equal(place(name, "1"), "n2");
});

test("accepts no pods with claims, which are bound in the same transaction", LIMIT, async (t) => {
  const { newPods } = await aPlacement(t, {});
  const source = { $case: "pvc" as const, value: { claimName: "data", readOnly: false } };
  const template = PodTemplate.fromPartial({ volumes: [{ name: "data", source }] });
  const of = { namespace: "shop", kind: "container_service", name: "web" };
  assert.equal(newPods.accepts({ ...of, template }), false);
  assert.equal(newPods.accepts({ ...of, template: PodTemplate.create() }), true);
});

test("lets the event loop run after 100,000 evaluated nodes", LIMIT, async (t) => {
  let turns = 0;
  const defer = (run: () => void): void => {
    turns++;
    setImmediate(run);
  };
  const { place, newPods } = await aPlacement(t, { nodes: [node("n1", "64")] }, defer);
  // A pod costs as much as 20 nodes, and one more for each node of the fleet.
  for (let index = 0; index < 4_761; index++) place(`p${index}`, "1m");
  await newPods.rest();
  assert.equal(turns, 0);
  place("last", "1m");
  await newPods.rest();
  assert.equal(turns, 1);
});

/** Returns a fleet of one node on which a filler leaves two processors, and an important pod needs three. */
async function withWaiting(t: TestContext) {
  const filler = aPod({ name: "filler", node: "n1", workload: "db" });
  const waiting = aPod({ name: "important", node: "", workload: "large" });
  const pods = [
    { ...filler, record: { ...asking(filler.record, "2"), priority: 100 } },
    { ...waiting, record: { ...asking(waiting.record, "3"), priority: 50 } },
  ];
  const placement = await aPlacement(t, { nodes: [node("n1", "4")], pods });
  await until("it waits", () => placement.unschedulable.get(waiting.record.uid) !== undefined);
  return { ...placement, important: "important" };
}

async function aPlacement(t: TestContext, contents: Contents, defer?: (run: () => void) => void) {
  const view = await aView(t, contents);
  const unschedulable = new UnschedulablePods({ nowMs: () => view.clock.nowMs(), onChange: () => {} });
  const log = pino({ level: "silent" });
  const controller = new PlacementController({
    ...{ ...view, log, profile: "pack", unschedulable },
    ...(defer && { defer }),
  } as const);
  t.after(() => controller.close());
  const { newPods } = controller;
  const place = (name: string, cpu: string): string | undefined => {
    const placed = newPods.place(asking(aPod({ name, node: "" }).record, cpu));
    newPods.confirm(placed === undefined ? [] : [placed]);
    return placed?.node;
  };
  await settled();
  return { ...view, unschedulable, controller, newPods, place };
}

/** Starts placement and the controller of a workload whose replicas need a processor each. */
async function aControl(t: TestContext, contents: Contents, replicas: number, failing = { failures: 0 }) {
  const { controller, ...view } = await aPlacement(t, contents);
  const keys: string[] = [];
  const store: Store = Object.create(view.store, {
    txn: {
      value: async (...[compares, ops]: Parameters<Store["txn"]>) => {
        const creates = ops.some((op) => op.type === "put" && op.key.startsWith("pods/"));
        if (creates && failing.failures-- > 0) {
          if (failing.failures > 0) throw new StoreError("OVERLOADED", "too many wait");
          return { succeeded: false, revision: 1 };
        }
        for (const op of ops) if (op.type === "put") keys.push(op.key);
        return view.store.txn(compares, ops);
      },
    },
  });
  let names = 0;
  const workloads = new WorkloadController({
    ...view,
    store,
    log: pino({ level: "silent" }),
    steps: { report: () => {} },
    // Draws the names in descending order.
    randomName: (length) => `${10_000 - names++}`.padStart(length, "x").slice(-length),
    pickVictims: (pods, count) => pods.slice(0, count),
    placement: controller.newPods,
    events: { record: () => {} },
    limits: { deadlineMs: 600_000, placementMs: 20_000, stableMs: 0 },
  });
  t.after(() => workloads.close());
  const resources = { requests: { cpu: "1" } };
  const spec = { scaling: { replicas }, container: { name: "main", image: "app:v1", resources } };
  await view.store.txn([], opsOf({ resources: [aWorkloadEntry({ spec })] }));
  return { ...view, written: (prefix: string) => keys.filter((key) => key.startsWith(prefix)) };
}

function asking(record: PodRecord, cpu: string): PodRecord {
  const container = { name: "main", image: "app:v1", resources: { requests: { cpu } } };
  return { ...record, template: PodTemplate.fromPartial({ container }) };
}

function node(name: string, cpu: string) {
  const made = aNode({ name });
  if (made.report?.report !== undefined)
    made.report.report.allocatable = { cpu, memory: "8Gi", pods: "10000" };
  return made;
}
