import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { AttemptState, RolloutReason, WorkloadStatusRecord } from "@forage/proto/forage/store/v1/store";
import { RolloutStatus } from "@forage/proto/forest/v1/forage";
import { pino } from "pino";
import {
  aJobEntry,
  aNode,
  aPod,
  aRollout,
  aServiceEntry,
  aWorkloadEntry,
} from "../../../test/support/entries.ts";
import { settled, until } from "../../../test/support/until.ts";
import { aView, type Contents, opsOf } from "../../../test/support/view.ts";
import { encodeRecord } from "../../model/codec.ts";
import { applyKey, workloadStatusKey } from "../../model/keys.ts";
import { toTimestamp } from "../../model/timestamp.ts";
import type { RolloutEntry } from "../../state/entries.ts";
import { UnschedulablePods } from "../placement/unschedulable-pods.ts";
import { RolloutController } from "./controller.ts";
import { FULL_EVALUATION_MS } from "./evaluation-cache.ts";

const LIMIT = { timeout: 180_000 };

test(
  "keeps a namespace's newest 500 finished rollouts with their apply ids, independent of the clock",
  LIMIT,
  async (t) => {
    // The time of each rollout's end is before that of the previous one.
    const rollouts = Array.from({ length: 620 }, (_, index) => finished(index, 1_000_000 - index));
    const others = Array.from({ length: 3 }, (_, index) => {
      return aRollout({ id: `o-${index}`, namespace: "other", applyId: `o-${index}`, finished: true });
    });
    const { state, store } = await start(t, { rollouts: [...rollouts, ...others] });
    await until("the others are forgotten", () => state.rollouts("shop").length <= 500);
    await settled();
    const kept = state.rollouts("shop").map(({ id }) => id);
    assert.deepEqual(
      kept.sort(),
      rollouts
        .slice(120)
        .map(({ id }) => id)
        .sort(),
    );
    assert.equal((await store.range("applies/shop/", {})).records.length, 500);
    assert.equal(state.rollouts("other").length, 3);
  },
);

test("forgets the oldest rollout when an apply without changes creates a finished one", LIMIT, async (t) => {
  const rollouts = Array.from({ length: 500 }, (_, index) => finished(index, index));
  const { state, store } = await start(t, { rollouts });
  await settled();
  assert.equal(state.rollouts("shop").length, 500);
  await store.txn([], opsOf({ rollouts: [finished(500, 500)] }));
  await until("the oldest is forgotten", () => state.rollout("r-0") === undefined);
  assert.equal(state.rollouts("shop").length, 500);
});

test("supersedes all but the newest of the rollouts that didn't change a running job", LIMIT, async (t) => {
  const { state, store, controller } = await start(t, {
    resources: [job()],
    rollouts: [ofJob(0, "create")],
  });
  for (let index = 1; index <= 40; index++)
    await store.txn([], opsOf({ rollouts: [ofJob(index, "unchanged")] }));
  await until("the others have ended", () => state.activeRollouts().length === 2);
  assert.deepEqual(
    state
      .activeRollouts()
      .map(({ id }) => id)
      .sort(),
    ["r-0", "r-40"],
  );
  const [ended] = state.rollout("r-39")?.record.resources ?? [];
  assert.equal(ended?.status, RolloutStatus.FAILED);
  assert.equal(ended?.reason, RolloutReason.SUPERSEDED);
  assert.equal(ended?.message, "superseded by rollout r-40");
  assert.equal(controller.progress("r-40")?.[0]?.reason, RolloutReason.UNSPECIFIED);
});

test("a service waits for its target that follows it in the bundle", LIMIT, async (t) => {
  const named = (kind: string) => ({ kind, name: "web", action: "create", specHash: "h1" });
  const rollout = aRollout({ id: "r-1", resources: [named("service"), named("container_service")] });
  const { controller } = await start(t, {
    resources: [aServiceEntry(), aWorkloadEntry()],
    rollouts: [rollout],
  });
  await settled();
  const [service] = controller.progress("r-1") ?? [];
  assert.equal(service?.message, "0 endpoints ready; waits for container_service/web");
  assert.equal(service?.status, RolloutStatus.IN_PROGRESS);
});

test("a service that is applied after its target waits for the first ready pod", LIMIT, async (t) => {
  const resources = [{ kind: "service", name: "web", action: "create", specHash: "h1" }];
  const { controller } = await start(t, {
    resources: [aServiceEntry(), aWorkloadEntry()],
    rollouts: [aRollout({ id: "r-1", resources })],
  });
  await settled();
  const [service] = controller.progress("r-1") ?? [];
  assert.equal(service?.message, "0 endpoints ready; no pod of container_service/web is ready");
  assert.equal(service?.status, RolloutStatus.IN_PROGRESS);
});

test("evaluates only the resources that changed, and all of them a second later", LIMIT, async (t) => {
  const names = ["api", "web"];
  const resources = names.map((name) => {
    return { kind: "container_service", name, action: "create", specHash: "h1" };
  });
  const { store, clock, seen } = await start(t, {
    resources: names.map((name) => aWorkloadEntry({ name })),
    rollouts: [aRollout({ id: "r-1", resources })],
  });
  await until("all were evaluated", () => seen.length >= 2);
  await settled();
  clock.advance(1);
  seen.length = 0;
  await store.txn([], opsOf({ pods: [aPod({ name: "web-1", workload: "web" })] }));
  await until("the changed one was evaluated", () => seen.length > 0);
  await settled();
  assert.deepEqual(seen, ["web"]);
  seen.length = 0;
  clock.advance(FULL_EVALUATION_MS);
  await until("all were evaluated again", () => seen.length > 0);
  await settled();
  assert.deepEqual(seen, ["api", "web"]);
  seen.length = 0;
  clock.advance(10 * FULL_EVALUATION_MS);
  await settled();
  assert.deepEqual(seen, [], "nothing changed since");
});

test("evaluates all resources when a node is lost", LIMIT, async (t) => {
  const target = { kind: "container_service", name: "web", action: "create", specHash: "h1" };
  const { state, clock, seen } = await start(t, {
    resources: [aWorkloadEntry()],
    nodes: [aNode()],
    rollouts: [aRollout({ id: "r-1", resources: [target] })],
  });
  await until("it was evaluated", () => seen.length > 0);
  await settled();
  clock.advance(1);
  seen.length = 0;
  state.setNodeHealth("n1", { ready: false, message: "lost", lastSeenMs: undefined }, true);
  await until("it was evaluated again", () => seen.length > 0);
});

test("a service stops waiting when the rollout attempt of its target ends", LIMIT, async (t) => {
  const target = aWorkloadEntry();
  const resources = [{ kind: "service", name: "web", action: "create", specHash: "h1" }];
  const { controller, store, state } = await start(t, {
    resources: [aServiceEntry(), target],
    rollouts: [aRollout({ id: "r-1", resources })],
  });
  await settled();
  const named = { namespace: "shop", kind: "container_service", name: "web" };
  const templateHash = state.resource(target.key)?.workload?.templateHash ?? "";
  const { generation } = target.record;
  const attempt = { generation, templateHash, state: AttemptState.FAILED };
  const record = WorkloadStatusRecord.fromPartial({
    ...named,
    status: { $case: "containerService", value: { attempt } },
  } as object);
  const key = workloadStatusKey(named.namespace, named.kind, named.name);
  await store.txn([], [{ type: "put", key, value: encodeRecord(WorkloadStatusRecord, record) }]);
  await until("its rollout has ended", () => state.rollout("r-1")?.record.finished === true);
  const [service] = controller.progress("r-1") ?? [];
  assert.equal(service?.message, "0 endpoints ready: no pod of container_service/web is ready");
});

function finished(index: number, createdMs: number): RolloutEntry {
  return aRollout({
    id: `r-${index}`,
    applyId: `a-${index}`,
    finished: true,
    createdAt: toTimestamp(createdMs),
    storeRevision: BigInt(index + 1),
  });
}

function job() {
  const entry = aJobEntry({ rolloutId: "r-0" });
  return { ...entry, record: { ...entry.record, generation: 1n } };
}

function ofJob(index: number, action: string): RolloutEntry {
  return aRollout({
    id: `r-${index}`,
    applyId: `a-${index}`,
    storeRevision: BigInt(index + 1),
    resources: [{ kind: "job", name: "migrate", action, specHash: "h1", generation: 1n }],
  });
}

async function start(t: TestContext, contents: Contents) {
  const view = await aView(t, contents);
  for (const { record } of contents.rollouts ?? []) {
    const key = applyKey(record.namespace, record.applyId);
    await view.store.txn([], [{ type: "put", key, value: new TextEncoder().encode(record.id) }]);
  }
  const seen: string[] = [];
  const controller = new RolloutController({
    ...view,
    routeProblem: (_kind, _namespace, name) => {
      seen.push(name);
      return "";
    },
    log: pino({ level: "silent" }),
    unschedulable: new UnschedulablePods({ nowMs: view.clock.nowMs, onChange: () => {} }),
    limits: { deadlineMs: 600_000, placementMs: 20_000, stableMs: 0 },
    readyEndpoints: () => 0,
  });
  t.after(() => controller.close());
  return { ...view, controller, seen };
}
