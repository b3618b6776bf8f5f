import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { PodPhase, PodStatus, PodTemplate } from "@forage/proto/forage/agent/v1/agent";
import { Container } from "@forage/proto/forest/v1/forage";
import { pino } from "pino";
import { aNode, aPod } from "../../../test/support/entries.ts";
import { until } from "../../../test/support/until.ts";
import { aView, type Contents, opsOf } from "../../../test/support/view.ts";
import type { EventInput } from "../../model/event.ts";
import { type Store, StoreError } from "../../store/index.ts";
import { PlacementController } from "./controller.ts";
import { UnschedulablePods } from "./unschedulable-pods.ts";

const LIMIT = { timeout: 120_000 };

test(
  "binds pods without a node, the oldest first, and gives the reason when no node fits",
  LIMIT,
  async (t) => {
    const nodes = [node("n1", "2"), node("n2", "2")];
    const { state, unschedulable } = await start(t, { nodes, pods: many(5, "cpu") });
    await until(
      "all pods that fit are bound",
      () => state.pods().filter((p) => p.record.node !== "").length === 4,
    );
    await until("the other has a reason", () =>
      state.unboundPods().every((p) => unschedulable.get(p.record.uid)),
    );
    const [left] = state.unboundPods();
    assert.match(unschedulable.get(left?.record.uid ?? "")?.summary ?? "", /0\/2 nodes: 2 insufficient cpu/);
  },
);

test("binds pods after the store has failed for a while", LIMIT, async (t) => {
  const failing = { times: 2 };
  const { state, clock, waits } = await start(t, { nodes: [node("n1", "8")], pods: many(3) }, failing);
  for (let failure = 1; failure <= 2; failure++) {
    await until("it waits before it tries again", () => waits() === 1);
    assert.equal(state.unboundPods().length, 3);
    clock.advance(30_000);
  }
  await until("all are bound", () => state.unboundPods().length === 0);
});

test("binds pods that are too large for one transaction", LIMIT, async (t) => {
  const pods = many(20).map((pod) => {
    return { ...pod, record: { ...pod.record, labels: { long: "x".repeat(200_000) } } };
  });
  const { state } = await start(t, { nodes: [node("n1", "64")], pods });
  await until("all are bound", () => state.unboundPods().length === 0);
});

test("places no pods on a node with an invalid report, and others on other nodes", LIMIT, async (t) => {
  const { state, store } = await start(t, { nodes: [node("n1", "a lot"), node("n2", "8")], pods: many(3) });
  await until("all are bound", () => state.unboundPods().length === 0);
  assert.ok(state.pods().every(({ record }) => record.node === "n2"));
  for (const op of opsOf({ nodes: [node("n3", "-1")], pods: [unbound("late")] })) await store.txn([], [op]);
  await until("the late one is bound", () => state.pod("shop", "late")?.record.node === "n2");
});

test("frees the resources of an ended pod of a job that is kept for its logs", LIMIT, async (t) => {
  const pod = unbound("done", "cpu");
  const ended = {
    ...pod,
    record: { ...pod.record, node: "n1", job: { run: "r", index: undefined, counted: "" } },
  };
  const { state, store } = await start(t, {
    nodes: [node("n1", "1")],
    pods: [ended, unbound("next", "cpu")],
  });
  assert.equal(state.unboundPods().length, 1);
  const status = PodStatus.fromPartial({ uid: pod.record.uid, phase: PodPhase.SUCCEEDED });
  for (const op of opsOf({ pods: [{ ...ended, status }] })) await store.txn([], [op]);
  await until("the next has its place", () => state.pod("shop", "next")?.record.node === "n1");
});

test("keeps the resources of an ended job's pod free while the pod is removed", LIMIT, async (t) => {
  const pod = unbound("done", "cpu");
  const job = { run: "r", index: undefined, counted: "" };
  const state$ = { $case: "terminated" as const, value: { exitCode: 0 } };
  const status = PodStatus.fromPartial({
    ...{ uid: pod.record.uid, phase: PodPhase.STOPPING },
    containers: [{ name: "main", state: state$ }],
  });
  const ended = { ...pod, record: { ...pod.record, node: "n1", job }, status };
  const { state } = await start(t, { nodes: [node("n1", "1")], pods: [ended, unbound("next", "cpu")] });
  await until("the next has its place", () => state.pod("shop", "next")?.record.node === "n1");
});

test("reports a pod whose requests can't be added up, and places the others", LIMIT, async (t) => {
  const poison = withMemory(unbound("poison"), ["5Pi", "5Pi"]);
  const pods = [{ ...poison, record: { ...poison.record, priority: 1_000 } }, ...many(3)];
  const { state, unschedulable, store, clock } = await start(t, { nodes: [node("n1", "8")], pods });
  await until("the others are bound", () => state.unboundPods().length === 1);
  await until("it has a reason", () => unschedulable.get("uid-poison") !== undefined);
  assert.match(
    unschedulable.get("uid-poison")?.summary ?? "",
    /^it can't be evaluated: quantity .* is too large$/,
  );
  for (const op of opsOf({ pods: [unbound("late")] })) await store.txn([], [op]);
  await until("a later one is bound", () => state.pod("shop", "late")?.record.node === "n1");
  const mended = unbound("poison");
  for (const op of opsOf({ pods: [mended] })) await store.txn([], [op]);
  await until("mended, it is bound at once", () => state.unboundPods().length === 0);
  clock.advance(600_000);
  assert.equal(unschedulable.get("uid-poison"), undefined);
});

test("reports and retries a pod that can't be decoded, and places the others", LIMIT, async (t) => {
  const { state, store, unschedulable, clock } = await start(t, { nodes: [node("n1", "8")] });
  const drainingPods = t.mock.method(state, "drainingPods", () => {
    throw new Error("damaged");
  });
  for (const op of opsOf({ pods: [unbound("unreadable")] })) await store.txn([], [op]);
  await until("it has a reason", () => unschedulable.get("uid-unreadable") !== undefined);
  assert.equal(unschedulable.get("uid-unreadable")?.summary, "it can't be evaluated: damaged");
  drainingPods.mock.restore();
  for (const op of opsOf({ pods: many(3) })) await store.txn([], [op]);
  await until("the others are bound", () => state.unboundPods().length === 1);
  clock.advance(30_000);
  await until("the agent retries automatically", () => state.unboundPods().length === 0);
});

test("counts a bound pod whose requests can't be added up as one pod", LIMIT, async (t) => {
  const poison = withMemory(unbound("poison"), ["5Pi", "5Pi"]);
  const bound = { ...poison, record: { ...poison.record, node: "n1" } };
  const { state } = await start(t, { nodes: [node("n1", "8")], pods: [bound, ...many(3)] });
  await until("the others are bound", () => state.unboundPods().length === 0);
});

test("places pods despite unknown resources and nodes with too many devices", LIMIT, async (t) => {
  const devices = (count: number, prefix: string) =>
    Object.fromEntries(Array.from({ length: count }, (_, i) => [`${prefix}.example/${i}`, "1"]));
  const inventing = unbound("inventing");
  const { template } = inventing.record;
  const requests = { cpu: "", memory: "", ephemeralStorage: "", extended: devices(300, "invented") };
  if (template?.container !== undefined) template.container.resources = { requests, limits: undefined };
  const crowded = node("n1", "1", devices(300, "many"));
  const { state, store, events } = await start(t, { nodes: [crowded], pods: [inventing, unbound("plain")] });
  await until("the plain one is bound", () => state.pod("shop", "plain")?.record.node === "n1");
  assert.deepEqual(
    events.map(({ kind, name, reason }) => `${kind} ${name} ${reason}`),
    ["node n1 ReconcileFailed"],
  );
  assert.match(events[0]?.message ?? "", /more extended resources than the limit; ignored: many\.example/);
  for (const op of opsOf({
    nodes: [node("gpu", "1", { "nvidia.com/gpu": "1" })],
    pods: [needing("nvidia.com/gpu")],
  }))
    await store.txn([], [op]);
  state.setNodeHealth("gpu", { ready: true, message: "", lastSeenMs: 1 }, true);
  await until("a GPU that comes later is found", () => state.pod("shop", "needing")?.record.node === "gpu");
});

test("applies anti-affinity to the changed labels of a bound pod", LIMIT, async (t) => {
  const relabelled = { ...unbound("a"), record: { ...unbound("a").record, node: "n1" } };
  const { state, store, unschedulable } = await start(t, { nodes: [node("n1", "8")], pods: [relabelled] });
  const labels = { app: "noisy" };
  for (const op of opsOf({ pods: [{ ...relabelled, record: { ...relabelled.record, labels } }] }))
    await store.txn([], [op]);
  for (const op of opsOf({ pods: [avoiding(labels)] })) await store.txn([], [op]);
  await until("it has a reason", () => unschedulable.get("uid-avoiding") !== undefined);
  assert.equal(state.pod("shop", "avoiding")?.record.node, "");
  for (const op of opsOf({ pods: [relabelled] })) await store.txn([], [op]);
  await until(
    "it is bound once the label is removed",
    () => state.pod("shop", "avoiding")?.record.node === "n1",
  );
});

test("doesn't preempt a pod that only reserves a place", LIMIT, async (t) => {
  const low = important("low", 0);
  const there = { ...low, record: { ...low.record, node: "n1" } };
  const { state, store, unschedulable, clock } = await start(t, { nodes: [node("n1", "1")], pods: [there] });
  const put = async (pod: typeof low) => {
    for (const op of opsOf({ pods: [pod] })) await store.txn([], [op]);
  };
  await put(important("middle", 5));
  await until("the low one is stopped", () => state.pod("shop", "low")?.record.stoppingSince !== undefined);
  await put(important("high", 10));
  await until("the high one has a reason", () => unschedulable.get("uid-high") !== undefined);
  assert.match(unschedulable.get("uid-high")?.summary ?? "", /insufficient cpu/);
  assert.equal(state.pod("shop", "middle")?.record.stoppingSince, undefined);
  await store.txn([], [{ type: "delete", key: there.key }]);
  await until("the one in the middle is preempted once it runs", () => {
    clock.advance(1_000);
    return state.pod("shop", "middle")?.record.stoppingSince !== undefined;
  });
  await store.txn([], [{ type: "delete", key: "pods/shop/middle" }]);
  await until("the most important one has the room", () => state.pod("shop", "high")?.record.node === "n1");
});

test("forgets which victims a pod waits for when it can't be evaluated", LIMIT, async (t) => {
  const low = important("low", 0);
  const there = { ...low, record: { ...low.record, node: "n1" } };
  const { state, store, unschedulable, clock } = await start(t, { nodes: [node("n1", "1")], pods: [there] });
  const put = async (contents: Contents) => {
    for (const op of opsOf(contents)) await store.txn([], [op]);
  };
  await put({ pods: [important("middle", 5)] });
  await until("the low one is stopped", () => state.pod("shop", "low")?.record.stoppingSince !== undefined);
  const podByUid = t.mock.method(state, "podByUid", () => {
    throw new Error("damaged");
  });
  await put({ nodes: [node("n1", "1", { "nvidia.com/gpu": "1" })] });
  const reason = (name: string) => unschedulable.get(`uid-${name}`)?.summary ?? "";
  await until("the middle one is rejected", () => reason("middle") === "it can't be evaluated: damaged");
  podByUid.mock.restore();
  await put({ pods: [important("high", 10)] });
  await until("the high one waits for the low one", () => /being stopped \(low\)/.test(reason("high")));
  clock.advance(30_000);
  await until("the middle one waits for nothing", () => /insufficient cpu/.test(reason("middle")));
});

async function start(t: TestContext, contents: Contents, failing = { times: 0 }) {
  const view = await aView(t, contents);
  const unschedulable = new UnschedulablePods({ nowMs: () => view.clock.nowMs(), onChange: () => {} });
  const store: Store = Object.create(view.store, {
    txn: {
      value: async (...args: Parameters<Store["txn"]>) => {
        if (failing.times-- > 0) throw new StoreError("OVERLOADED", "too many wait");
        return view.store.txn(...args);
      },
    },
  });
  const log = pino({ level: "silent" });
  const before = view.clock.pending;
  const events: EventInput[] = [];
  const recorder = { record: (event: EventInput) => void events.push(event) };
  const options = { ...view, store, log, profile: "pack", unschedulable, events: recorder } as const;
  const controller = new PlacementController(options);
  t.after(() => controller.close());
  return { ...view, unschedulable, events, waits: () => view.clock.pending - before };
}

function many(count: number, cpu = ""): ReturnType<typeof unbound>[] {
  return Array.from({ length: count }, (_, index) => unbound(`p${index}`, cpu));
}

function unbound(name: string, cpu = "") {
  const pod = aPod({ name, node: "" });
  const resources = {
    requests: { cpu: cpu === "" ? "100m" : "1", memory: "", ephemeralStorage: "", extended: {} },
    limits: undefined,
  };
  const { template } = pod.record;
  if (template?.container !== undefined) template.container.resources = resources;
  return pod;
}

function important(name: string, priority: number) {
  const pod = unbound(name, "cpu");
  return { ...pod, record: { ...pod.record, priority } };
}

function withMemory(pod: ReturnType<typeof unbound>, amounts: readonly string[]) {
  const containers = amounts.map((memory, index) =>
    Container.fromPartial({ name: `c${index}`, image: "app:v1", resources: { requests: { memory } } }),
  );
  const [container, ...sidecars] = containers;
  const template = PodTemplate.fromPartial({ ...pod.record.template, container, sidecars });
  return { ...pod, record: { ...pod.record, template } };
}

function needing(resource: string) {
  const pod = unbound("needing");
  const { template } = pod.record;
  const requests = { cpu: "", memory: "", ephemeralStorage: "", extended: { [resource]: "1" } };
  if (template?.container !== undefined) template.container.resources = { requests, limits: undefined };
  return pod;
}

function avoiding(labels: Readonly<Record<string, string>>) {
  const pod = unbound("avoiding");
  const term = { labelSelector: { matchLabels: labels }, topologyKey: "kubernetes.io/hostname" };
  const podConfig = { affinity: { podAntiAffinity: { required: [term] } } };
  const template = PodTemplate.fromPartial({ ...pod.record.template, podConfig } as object);
  return { ...pod, record: { ...pod.record, template } };
}

function node(name: string, cpu: string, devices: Readonly<Record<string, string>> = {}) {
  const made = aNode({ name });
  const allocatable = { cpu, memory: "8Gi", pods: "110", ...devices };
  if (made.report?.report !== undefined) made.report.report.allocatable = allocatable;
  return made;
}
