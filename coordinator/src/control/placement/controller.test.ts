import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { PodPhase, PodStatus } from "@forage/proto/forage/agent/v1/agent";
import { pino } from "pino";
import { aNode, aPod } from "../../../test/support/entries.ts";
import { until } from "../../../test/support/until.ts";
import { aView, type Contents, opsOf } from "../../../test/support/view.ts";
import { type Store, StoreError } from "../../store/index.ts";
import { PlacementController } from "./controller.ts";
import { Unplaced } from "./unplaced.ts";

const limit = { timeout: 120_000 };

test(
  "pods without a node are bound, the oldest first, and a full fleet says why it takes no more",
  limit,
  async (t) => {
    const nodes = [node("n1", "2"), node("n2", "2")];
    const { state, unplaced } = await start(t, { nodes, pods: many(5, "cpu") });
    await until(
      "all that fit are bound",
      () => state.pods().filter((p) => p.record.node !== "").length === 4,
    );
    await until("the other has a reason", () => state.unboundPods().every((p) => unplaced.get(p.record.uid)));
    const [left] = state.unboundPods();
    assert.match(unplaced.get(left?.record.uid ?? "")?.summary ?? "", /0\/2 nodes: 2 insufficient cpu/);
  },
);

test("a store that fails for a while holds nothing up for good", limit, async (t) => {
  const failing = { times: 2 };
  const { state, clock, waits } = await start(t, { nodes: [node("n1", "8")], pods: many(3) }, failing);
  for (let failure = 1; failure <= 2; failure++) {
    await until("it waits before it tries again", () => waits() === 1);
    assert.equal(state.unboundPods().length, 3);
    clock.advance(30_000);
  }
  await until("all are bound", () => state.unboundPods().length === 0);
});

test("pods too long for one transaction are bound all the same", limit, async (t) => {
  const pods = many(20).map((pod) => {
    return { ...pod, record: { ...pod.record, labels: { long: "x".repeat(200_000) } } };
  });
  const { state } = await start(t, { nodes: [node("n1", "64")], pods });
  await until("all are bound", () => state.unboundPods().length === 0);
});

test("a node that says nonsense takes no pods, and the others do their work", limit, async (t) => {
  const { state, store } = await start(t, { nodes: [node("n1", "a lot"), node("n2", "8")], pods: many(3) });
  await until("all are bound", () => state.unboundPods().length === 0);
  assert.ok(state.pods().every(({ record }) => record.node === "n2"));
  for (const op of opsOf({ nodes: [node("n3", "-1")], pods: [unbound("late")] })) await store.txn([], [op]);
  await until("the late one is bound", () => state.pod("shop", "late")?.record.node === "n2");
});

test("what a job's pod used is free once it has ended, though it stays for its logs", limit, async (t) => {
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

async function start(t: TestContext, contents: Contents, failing = { times: 0 }) {
  const view = await aView(t, contents);
  const unplaced = new Unplaced({ nowMs: () => view.clock.nowMs(), onChange: () => {} });
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
  const controller = new PlacementController({ ...view, store, log, profile: "pack", unplaced });
  t.after(() => controller.close());
  return { ...view, unplaced, waits: () => view.clock.pending - before };
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

function node(name: string, cpu: string) {
  const made = aNode({ name });
  const allocatable = { cpu, memory: "8Gi", pods: "110" };
  if (made.report?.report !== undefined) made.report.report.allocatable = allocatable;
  return made;
}
