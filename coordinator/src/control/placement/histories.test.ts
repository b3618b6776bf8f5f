import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { type Random, randomOf } from "@forage/common/random";
import { PodTemplate } from "@forage/proto/forage/agent/v1/agent";
import { NodeRecord, ObjectRecord, PodRecord } from "@forage/proto/forage/store/v1/store";
import { Fleet } from "@forage/scheduler";
import { pino } from "pino";
import { aNode, aPod } from "../../../test/support/entries.ts";
import { settled } from "../../../test/support/until.ts";
import { aView, opsOf } from "../../../test/support/view.ts";
import { ObjectFaults } from "../../faults/object-faults.ts";
import { encodeRecord } from "../../model/codec.ts";
import { nodeKey, objectKey } from "../../model/keys.ts";
import { podSpecOf } from "../../model/pod-spec.ts";
import { toTimestamp } from "../../model/timestamp.ts";
import type { PodEntry } from "../../state/entries.ts";
import type { Op } from "../../store/index.ts";
import { claimTiesOf } from "./claims.ts";
import { PlacementController } from "./controller.ts";
import { FleetView } from "./fleet-view.ts";
import { UnschedulablePods } from "./unschedulable-pods.ts";

// The number of random histories of a hundred changes. 40 take a few seconds; SEEDS=5000 is for a long run.
const SEEDS = Number(process.env.SEEDS ?? 40);
const CHANGES = 100;
/** Longer than any back-off, and shorter than the periodic flush of all waiting pods, which would hide missed wake-ups. */
const REST_MS = 30_000;

test("after random changes the scheduler's fleet matches the view, and every pod that fits is placed", async (t) => {
  for (let seed = 1; seed <= SEEDS; seed++) await runHistory(t, seed);
});

type World = Awaited<ReturnType<typeof start>>;

async function runHistory(t: TestContext, seed: number): Promise<void> {
  const random = randomOf(seed);
  const world = await start(t, random);
  try {
    for (let change = 0; change < CHANGES; change++) {
      await disturb(world, random, change);
      if (random.chance(0.5)) await settled();
      if (random.chance(0.2)) world.clock.advance(random.below(3_000));
      if (change % 25 === 24) await checkAtRest(world, `seed ${seed}, change ${change}`);
    }
  } finally {
    await world.controller.close();
  }
}

async function start(t: TestContext, random: Random) {
  const nodes = Array.from({ length: 2 + random.below(5) }, (_, i) => aRandomNode(random, `n${i}`));
  const view = await aView(t, { nodes });
  const unschedulable = new UnschedulablePods({ nowMs: view.clock.nowMs, onChange: () => {} });
  const log = pino({ level: "silent" });
  const controller = new PlacementController({ ...view, log, profile: "pack", unschedulable });
  return { ...view, log, unschedulable, controller };
}

async function disturb(world: World, random: Random, change: number): Promise<void> {
  const { state, store } = world;
  const pods = state.pods();
  const bound = pods.filter(({ record }) => record.node !== "" && record.stoppingSince === undefined);
  const kind = random.next();
  const write = (...ops: Op[]) => store.txn([], ops);
  const rewrite = (pod: PodEntry, record: Partial<PodRecord>) =>
    write({ type: "put", key: pod.key, value: encodeRecord(PodRecord, { ...pod.record, ...record }) });
  if (kind < 0.1) await createPlaced(world, random, `p${change}`);
  else if (kind < 0.4) await write(...opsOf({ pods: [aRandomPod(random, `p${change}`)] }));
  else if (kind < 0.5 && bound.length > 0)
    await rewrite(random.pick(bound), { labels: { app: random.pick(["a", "b", "c"]) } });
  else if (kind < 0.6 && bound.length > 0)
    await rewrite(random.pick(bound), { stoppingSince: toTimestamp(1) });
  else if (kind < 0.65 && pods.length > 0) await write({ type: "delete", key: random.pick(pods).key });
  else if (kind < 0.7 && bound.length > 0) {
    const pod = random.pick(bound);
    await rewrite(pod, {
      drainingSince: pod.record.drainingSince === undefined ? toTimestamp(1) : undefined,
    });
  } else if (kind < 0.78) {
    const name = random.pick(state.nodes()).name;
    await write(...opsOf({ nodes: [aRandomNode(random, name)] }));
  } else if (kind < 0.82) {
    const { name } = random.pick(state.nodes());
    state.setNodeHealth(name, { ready: random.chance(0.6), message: "", lastSeenMs: 1, sinceMs: 1 }, true);
  } else if (kind < 0.85) await changeNodes(world, random);
  else if (kind < 0.95) await changeClaim(world, random.pick(["c0", "c1", "c2"]), random);
  // Removes some of the pods that are stopping.
  const gone = pods.filter(({ record }) => record.stoppingSince !== undefined && random.chance(0.3));
  for (const { key } of gone) await write({ type: "delete", key });
}

/** Places up to three new pods before they are written. The write fails now and then. */
async function createPlaced({ store, controller }: World, random: Random, name: string): Promise<void> {
  const { newPods } = controller;
  const made = Array.from({ length: 1 + random.below(3) }, (_, index) =>
    aRandomPod(random, `${name}-${index}`),
  );
  const pods = made.map((pod) => {
    const { namespace, workloadKind: kind, workloadName, template = PodTemplate.create() } = pod.record;
    const accepted = newPods.accepts({ namespace, kind, name: workloadName, template });
    const placed = accepted ? newPods.place(pod.record) : undefined;
    return { pod: { ...pod, record: placed ?? pod.record }, placed };
  });
  if (random.chance(0.7)) {
    await store.txn([], opsOf({ pods: pods.map(({ pod }) => pod) }));
    newPods.confirm(pods.flatMap(({ placed }) => placed ?? []));
  } else if (random.chance(0.5)) await settled();
  newPods.release();
}

async function changeNodes({ state, store }: World, random: Random): Promise<void> {
  const names = state.nodes().map(({ name }) => name);
  if (names.length > 2 && random.chance(0.5)) {
    const name = random.pick(names);
    await store.txn([], [{ type: "delete", key: nodeKey(name) }]);
    return;
  }
  const node = aRandomNode(random, `n${random.below(8)}`);
  for (const op of opsOf({ nodes: [node] })) await store.txn([], [op]);
  state.setNodeHealth(node.name, node.health, true);
}

async function changeClaim({ state, store }: World, name: string, random: Random): Promise<void> {
  const key = objectKey({ namespace: "shop", kind: "claim", name });
  const there = state.objects.get({ namespace: "shop", kind: "claim", name }) !== undefined;
  if (there && random.chance(0.3)) {
    await store.txn([], [{ type: "delete", key }]);
    return;
  }
  if (there) return;
  const record = ObjectRecord.fromPartial({
    namespace: "shop",
    kind: "claim",
    name,
    spec: { $case: "claim", value: { node: "" } },
  });
  await store.txn([], [{ type: "put", key, value: encodeRecord(ObjectRecord, record) }]);
}

async function checkAtRest(world: World, at: string): Promise<void> {
  const { state, store, clock } = world;
  // Preemption stops pods, whose end makes room for others. Repeats until nothing changes.
  for (let rounds = 0; rounds < 60; rounds++) {
    await rest();
    const stopping = state.pods().filter(({ record }) => record.stoppingSince !== undefined);
    if (stopping.length === 0) break;
    for (const { key } of stopping) await store.txn([], [{ type: "delete", key }]);
  }
  for (const pod of state.unboundPods()) {
    const ties = claimTiesOf(pod, state);
    if (ties.problem !== undefined) continue;
    const left = state.drainingPods(pod.workloadKey).map(({ record }) => record.node);
    const fleet = afresh(world);
    const spec = podSpecOf(pod.record, ties.nodes, left);
    assert.equal(fleet.place(spec), undefined, `${at}: ${pod.record.name} waits though a node could take it`);
    assert.equal(fleet.preempt(spec), undefined, `${at}: ${pod.record.name} waits though it could preempt`);
    assert.notEqual(
      world.unschedulable.get(pod.record.uid),
      undefined,
      `${at}: ${pod.record.name} has no reason`,
    );
  }
  compare(world, at);

  async function rest(): Promise<void> {
    for (let turns = 0; turns < 6; turns++) {
      for (let waits = 0; waits < 5; waits++) await settled();
      clock.advance(REST_MS / 6);
    }
    for (let waits = 0; waits < 5; waits++) await settled();
  }
}

/** Pods whose explanations show all free resources and all counted pods. */
const PROBES = [
  {
    resources: {
      requests: { cpu: "1k", memory: "1Ti", ephemeralStorage: "1Ti", extended: { "x.io/gpu": "99" } },
    },
  },
] as const;

function compare(world: World, at: string): void {
  const { controller } = world;
  const fresh = afresh(world);
  const seen = (explanation: ReturnType<Fleet["explain"]> | undefined) =>
    explanation?.rejections.map(({ node, message }) => `${node}: ${message}`);
  const check = (pod: PodEntry): void =>
    assert.deepEqual(seen(controller.explain(pod)), seen(fresh.explain(podSpecOf(pod.record))), at);
  for (const { resources } of PROBES) check(aProbe({ container: { name: "main", image: "a", resources } }));
  for (const app of ["a", "b", "c"])
    for (const rules of [{ podAntiAffinity: selecting(app) }, { podAffinity: selecting(app) }])
      check(aProbe({ container: { name: "main", image: "a" }, podConfig: { affinity: rules } }));
}

function afresh({ state, log }: World): Fleet {
  const fleet = new Fleet({ profile: "pack" });
  new FleetView({ state, fleet, faults: new ObjectFaults({ loop: "test", log }) });
  return fleet;
}

function selecting(app: string) {
  const term = {
    labelSelector: { matchLabels: { app } },
    topologyKey: "kubernetes.io/hostname",
    namespaces: ["shop"],
  };
  return { required: [term] };
}

function aProbe(template: object): PodEntry {
  const pod = aPod({ name: "probe", workload: "probe", node: "" });
  return { ...pod, refs: [], record: { ...pod.record, template: PodTemplate.fromPartial(template) } };
}

function aRandomPod(random: Random, name: string): PodEntry {
  const workload = random.pick(["web", "db", "cache"]);
  const pod = aPod({ name, workload, node: "", labels: { app: random.pick(["a", "b", "c"]) } });
  const rules = random.pick([
    undefined,
    undefined,
    { podAntiAffinity: selecting("a") },
    { podAffinity: selecting("b") },
  ]);
  const claim = random.chance(0.15) ? random.pick(["c0", "c1", "c2"]) : undefined;
  const spread = {
    maxSkew: 1,
    topologyKey: "zone",
    whenUnsatisfiable: "DoNotSchedule",
    labelSelector: { matchLabels: { app: "c" } },
  };
  const template = PodTemplate.fromPartial({
    container: {
      name: "main",
      image: "app:v1",
      resources: {
        requests: {
          cpu: random.pick(["100m", "500m", "1", "3"]),
          memory: random.pick(["64Mi", "1Gi"]),
          extended: random.chance(0.2) ? { "x.io/gpu": "1" } : {},
        },
      },
    },
    podConfig: {
      ...(rules && { affinity: rules }),
      ...(random.chance(0.2) && { topologySpreadConstraints: [spread] }),
      ...(random.chance(0.2) && { nodeSelector: { disk: random.pick(["ssd", "hdd"]) } }),
    },
    ...(claim !== undefined && {
      volumes: [{ name: "data", source: { $case: "pvc", value: { claimName: claim } } }],
    }),
  } as object);
  const record = { ...pod.record, template, priority: random.pick([0, 0, 0, 5, 10]) };
  return { ...pod, record };
}

function aRandomNode(random: Random, name: string) {
  const node = aNode({ name });
  const report = node.report?.report;
  if (report !== undefined)
    report.allocatable = {
      cpu: random.pick(["1", "2", "4"]),
      memory: random.pick(["2Gi", "8Gi"]),
      "ephemeral-storage": "10Gi",
      pods: random.pick(["3", "110"]),
      ...(random.chance(0.4) && { "x.io/gpu": random.pick(["1", "2"]) }),
    };
  const labels = {
    ...(random.chance(0.8) && { zone: random.pick(["z1", "z2"]) }),
    ...(random.chance(0.6) && { disk: random.pick(["ssd", "hdd"]) }),
  };
  const taints = random.chance(0.15) ? [{ key: "team", value: "", effect: "NoSchedule" }] : [];
  const record = NodeRecord.fromPartial({
    ...node.record,
    labels,
    taints,
    unschedulable: random.chance(0.1),
  });
  return { ...node, record };
}
