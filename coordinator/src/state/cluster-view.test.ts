import assert from "node:assert/strict";
import { test } from "node:test";
import { type Random, randomOf } from "@forage/common/random";
import { VirtualClock } from "@forage/common/virtual-clock";
import { PodPhase, PodTemplate } from "@forage/proto/forage/agent/v1/agent";
import { aNode, aPod, aRollout, aServiceEntry, aWorkloadEntry } from "../../test/support/entries.ts";
import { settled } from "../../test/support/until.ts";
import { aView, opsOf } from "../../test/support/view.ts";
import { rewritePod, templateWrite } from "../control/pod-writes.ts";
import { CoordinatorError } from "../errors.ts";
import { encodePod } from "../model/codec.ts";
import { indexedTemplate } from "../model/indexed-template.ts";
import { toTimestamp } from "../model/timestamp.ts";
import { createMemoryStore, type Op } from "../store/index.ts";
import { ClusterView } from "./cluster-view.ts";
import type { Change } from "./entries.ts";
import { loadClusterView } from "./load-view.ts";

const SECRET_A = { $case: "secretRef", value: { secretName: "a", key: "k" } } as const;

test("a view that follows every change equals one that is loaded at the end", async () => {
  for (let seed = 0; seed < 40; seed++) {
    const random = randomOf(seed);
    const store = createMemoryStore({ clock: new VirtualClock() });
    for (let step = 0; step < random.below(20); step++) await store.txn([], someOps(random));
    const followed = new ClusterView();
    const end = new AbortController();
    const following = (await loadClusterView(store, followed))(end.signal);
    const mirror = mirrorOf(followed);
    for (let step = 0; step < 60; step++) {
      const { revision } = await store.txn([], someOps(random));
      await followed.reached(revision);
    }
    const read = new ClusterView();
    await loadClusterView(store, read);
    assert.deepEqual(contentsOf(followed), contentsOf(read), `seed ${seed}`);
    assert.deepEqual(mirror(), contentsOf(followed), `seed ${seed}: the changes are complete`);
    end.abort();
    await following;
    await store.close();
  }
});

test("a change contains the entry before and after it", async (t) => {
  const { store, state } = await aView(t, { pods: [aPod({ name: "a", node: "" })] });
  const seen: Change[] = [];
  state.subscribe((changes) => seen.push(...changes));
  const { revision } = await store.txn([], opsOf({ pods: [aPod({ name: "a", node: "n1" })] }));
  await state.reached(revision);
  const [change] = seen;
  assert.ok(change?.type === "pod");
  assert.deepEqual([change.before?.record.node, change.after?.record.node], ["", "n1"]);
});

test("finds pods by uid, workload and node, and pods without a node", async (t) => {
  const pods = [
    aPod({ name: "a" }),
    aPod({ name: "b", node: "" }),
    aPod({ name: "c", node: "", stopping: true }),
  ];
  const { state } = await aView(t, { pods });
  assert.equal(state.podByUid("uid-a")?.record.name, "a");
  assert.equal(state.podByUid("uid-x"), undefined);
  assert.deepEqual(namesOf(state.podsOfWorkload("shop/container_service/web")), ["a", "b", "c"]);
  assert.deepEqual(namesOf(state.podsOnNode("n1")), ["a"]);
  assert.deepEqual(namesOf(state.unboundPods()), ["b"]);
  assert.deepEqual(namesOf(state.pods("other")), []);
});

test("orders rollouts of a resource by the store's revision, and rollouts of earlier versions by time", async (t) => {
  const ids = ["r-e", "r-d", "r-c", "r-a", "r-b"];
  const rollouts = ids.map((id, index) =>
    aRollout({
      id,
      // The clock was set back before the third.
      createdAt: toTimestamp(index < 2 ? 1000 + index : 100 - index),
      storeRevision: index < 2 ? 0n : BigInt(index),
      resources: [{ kind: "service", name: "web" }],
    }),
  );
  const { state } = await aView(t, { rollouts });
  assert.deepEqual(
    state.rolloutsOf("shop", "service", "web").map(({ id }) => id),
    ids,
  );
});

test("adds to pods the template that their record refers to, with the index for Indexed jobs", async (t) => {
  const { store, state } = await aView(t);
  const template = PodTemplate.fromPartial({
    container: { name: "main", image: "app:v1", env: [{ name: "A", valueSource: SECRET_A }] },
    podConfig: {},
  });
  const shared = { namespace: "shop", kind: "job", name: "web", template };
  const job = (index: number) => ({ run: "r", index, counted: "" });
  const made = [0, 1].map((index) => aPod({ name: `p${index}`, kind: "job", job: job(index) }));
  const records = made.map(({ record }) => ({ ...record, templateRef: "t1" }));
  const { revision } = await store.txn(
    [],
    [
      ...templateWrite(shared, "t1").ops,
      ...records.map((it): Op => ({ type: "put", key: `pods/shop/${it.name}`, value: encodePod(it) })),
    ],
  );
  await state.reached(revision);
  for (const index of [0, 1]) {
    const pod = state.pod("shop", `p${index}`);
    assert.deepEqual(pod?.record.template, indexedTemplate(template, index));
    assert.deepEqual(namesOf(state.podsReferring({ namespace: "shop", kind: "secret", name: "a" })), [
      "p0",
      "p1",
    ]);
  }
  const read = new ClusterView();
  await loadClusterView(store, read);
  assert.deepEqual(contentsOf(read), contentsOf(state), "also when it is read at the start");
});

test("reads the template from a pod's record of an earlier version", async (t) => {
  const { state, store } = await aView(t, { pods: [aPod({ name: "a", annotations: { old: "yes" } })] });
  const pod = state.pod("shop", "a");
  assert.deepEqual(pod?.record.template?.podConfig?.annotations, { old: "yes" });
  assert.ok(pod);
  const [op] = rewritePod(pod, { ...pod.record, node: "n2" }).ops;
  assert.ok(op);
  const { revision } = await store.txn([], [op]);
  await state.reached(revision);
  assert.deepEqual(state.pod("shop", "a")?.record.template?.podConfig?.annotations, { old: "yes" });
});

test("keeps a status that arrives before its pod", async (t) => {
  const { store, state } = await aView(t);
  const pod = aPod({ name: "a", status: { phase: PodPhase.RUNNING, ready: true } });
  const [record, status] = opsOf({ pods: [pod] });
  assert.ok(record !== undefined && status !== undefined);
  await store.txn([], [status]);
  const { revision } = await store.txn([], [record]);
  await state.reached(revision);
  assert.equal(state.pod("shop", "a")?.status?.ready, true);
});

test("reached resolves when the view contains the revision, and at once if it does already", async () => {
  const state = new ClusterView();
  let reached = false;
  void state.reached(3).then(() => {
    reached = true;
  });
  for (const revision of [1, 2]) state.apply([], revision);
  await settled();
  assert.equal(reached, false);
  state.apply([], 3);
  await settled();
  assert.equal(reached, true);
  await state.reached(2);
});

test("publishes health on request, and keeps it over other changes of the node", async (t) => {
  const { store, state } = await aView(t, { nodes: [aNode({ ready: false })] });
  const seen: Change[] = [];
  const stop = state.subscribe((changes) => seen.push(...changes));
  const health = { ready: true, message: "", lastSeenMs: 5 };
  state.setNodeHealth("n1", health, false);
  assert.deepEqual(seen, []);
  state.setNodeHealth("n1", health, true);
  assert.equal(seen.length, 1);
  state.setNodeHealth("unknown", health, true);
  assert.equal(state.node("unknown"), undefined);
  const { revision } = await store.txn([], opsOf({ nodes: [aNode({ labels: { zone: "a" } })] }));
  await state.reached(revision);
  assert.deepEqual(state.node("n1")?.health, health);
  stop();
  const count = seen.length;
  state.setNodeHealth("n1", health, true);
  assert.equal(seen.length, count);
});

test("names a record that can't be decoded", () => {
  const record = { value: Uint8Array.of(9, 1, 2), createRevision: 1, modRevision: 1, version: 1 };
  assert.throws(
    () => new ClusterView().load([{ key: "pods/shop/a", ...record }], 1),
    (error: unknown) => error instanceof CoordinatorError && error.message.includes("pods/shop/a"),
  );
});

/** Returns one or two random operations on different keys. */
function someOps(random: Random): Op[] {
  const ops = new Map<string, Op>();
  for (let count = 0; count < random.below(2) + 1; count++) {
    const written = opsOf(someContents(random));
    for (const op of written)
      if (op.type === "put") ops.set(op.key, random.chance(0.3) ? { type: "delete", key: op.key } : op);
  }
  return [...ops.values()];
}

function someContents(random: Random) {
  const name = `x${random.below(4)}`;
  const node = random.pick(["", "n0", "n1"]);
  switch (random.below(5)) {
    case 0:
      return {
        resources: [
          random.chance(0.5)
            ? aWorkloadEntry({ name, deleting: random.chance(0.2) })
            : aServiceEntry({ name }),
        ],
      };
    case 1:
      return { nodes: [aNode({ name: `n${random.below(2)}`, address: random.pick(["192.0.2.1", ""]) })] };
    case 2: {
      const resources = [
        { kind: "service", name },
        { kind: "service", name: "x0" },
      ];
      return {
        rollouts: [aRollout({ id: `r-${random.below(4)}`, finished: random.chance(0.5), resources })],
      };
    }
    default: {
      const status = random.chance(0.5)
        ? { status: { ready: random.chance(0.5), phase: PodPhase.RUNNING } }
        : {};
      return {
        pods: [
          aPod({
            name,
            node,
            workload: random.pick(["web", "api"]),
            stopping: random.chance(0.3),
            ...status,
          }),
        ],
      };
    }
  }
}

/** Returns everything that the view can return, in a fixed order. */
function contentsOf(state: ClusterView) {
  const sorted = <T>(items: readonly T[], keyOf: (item: T) => string): T[] =>
    [...items].sort((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1));
  const names = ["x0", "x1", "x2", "x3"];
  return {
    resources: sorted(state.resources(), ({ key }) => key),
    ofShop: sorted(state.resources("shop"), ({ key }) => key),
    pods: sorted(state.pods(), ({ key }) => key),
    nodes: sorted(state.nodes(), ({ name }) => name).map(({ health: _, ...node }) => node),
    rollouts: sorted(state.rollouts(), ({ id }) => id),
    active: sorted(state.activeRollouts(), ({ id }) => id).map(({ id }) => id),
    unbound: namesOf(state.unboundPods()),
    onNodes: ["n0", "n1"].map((node) => namesOf(state.podsOnNode(node))),
    ofWorkloads: ["web", "api"].map((w) => namesOf(state.podsOfWorkload(`shop/container_service/${w}`))),
    byUid: names.map((name) => state.podByUid(`uid-${name}`)?.key),
    ofResources: names.map((name) =>
      state
        .rolloutsOf("shop", "service", name)
        .map(({ id }) => id)
        .sort(),
    ),
  };
}

/** Returns a function that returns a copy of the view, maintained from its changes only. */
function mirrorOf(state: ClusterView): () => ReturnType<typeof contentsOf> {
  const start = contentsOf(state);
  const resources = new Map(start.resources.map((r) => [r.key, r]));
  const pods = new Map(start.pods.map((p) => [p.key, p]));
  const rollouts = new Map(start.rollouts.map((r) => [r.id, r]));
  const nodes = new Map(start.nodes.map((n) => [n.name, n]));
  const put = <T>(map: Map<string, T>, key: string | undefined, after: T | undefined): void => {
    if (after === undefined) map.delete(key ?? "");
    else map.set(key ?? "", after);
  };
  state.subscribe((changes) => {
    for (const change of changes) {
      if (change.type === "resource") put(resources, (change.after ?? change.before)?.key, change.after);
      else if (change.type === "pod") put(pods, (change.after ?? change.before)?.key, change.after);
      else if (change.type === "rollout") put(rollouts, (change.after ?? change.before)?.id, change.after);
      else if (change.type === "node") {
        const { health: _, ...node } = change.after ?? { health: undefined };
        put(
          nodes,
          (change.after ?? change.before)?.name,
          change.after && (node as (typeof start.nodes)[number]),
        );
      }
    }
  });
  const values = <T>(map: Map<string, T>): T[] =>
    [...map].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, v]) => v);
  return () => ({
    ...contentsOf(state),
    resources: values(resources),
    pods: values(pods),
    rollouts: values(rollouts),
    nodes: values(nodes),
  });
}

function namesOf(pods: readonly { readonly record: { readonly name: string } }[]): string[] {
  return pods.map(({ record }) => record.name).sort();
}
