import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { PodPhase } from "@forage/proto/forage/agent/v1/agent";
import { AttemptState, DrainRecord, NodeTaint } from "@forage/proto/forage/store/v1/store";
import { PodConfig, RolloutStatus } from "@forage/proto/forest/v1/forage";
import { pino } from "pino";
import { aJobEntry, aNode, aPod, aRollout, aWorkloadEntry } from "../../test/support/entries.ts";
import { aView, type Contents } from "../../test/support/view.ts";
import { ActingTime } from "../acting-time/acting-time.ts";
import { toTimestamp } from "../model/timestamp.ts";
import type { ClusterView } from "../state/cluster-view.ts";
import { DrainController } from "./drain/controller.ts";
import { EvictionController } from "./eviction/controller.ts";
import { jobStatusOf } from "./job/job-input.ts";
import { JobReconciler } from "./job/reconciler.ts";
import { UnschedulablePods } from "./placement/unschedulable-pods.ts";
import { RebalanceController } from "./rebalance/controller.ts";
import { RolloutController } from "./rollout/controller.ts";
import { WorkloadController } from "./workload/controller.ts";

const START_MS = 1_000_000;
const LIMIT_MS = 60_000;
const STANDSTILL_MS = 600_000;
const MARGIN_MS = 5_000;

type View = Awaited<ReturnType<typeof aView>> & { readonly time: ActingTime };

interface Deadline {
  readonly name: string;
  readonly contents: () => Contents;
  readonly limitMs?: number;
  /**
   * The milliseconds between the action and the start of a coordinator that starts long after the deadline. Default: not
   * tested.
   */
  readonly afterStartMs?: number;
  readonly start: (view: View) => { close?(): Promise<void>; evaluate?(): Promise<unknown> };
  /** Reports whether the action at the end of the deadline was taken. */
  readonly acted: (state: ClusterView) => boolean;
}

const common = {
  log: pino({ level: "silent" }),
  steps: { report: () => {} },
  randomName: (length: number) => "x".repeat(length),
  events: { record: () => {} },
};

const DEADLINES: readonly Deadline[] = [
  {
    name: "the progress deadline of a rollout",
    afterStartMs: LIMIT_MS,
    contents: () => ({ resources: [aWorkloadEntry()], nodes: [aNode()] }),
    start: (view) => aWorkloadController(view, { deadlineMs: LIMIT_MS }),
    acted: (state) => attemptState(state) === AttemptState.FAILED,
  },
  {
    name: "the placement deadline of a rollout",
    contents: () => ({ resources: [aWorkloadEntry()], nodes: [aNode()] }),
    start: (view) => aWorkloadController(view, { placementMs: LIMIT_MS, waitsForNode: true }),
    acted: (state) => attemptState(state) === AttemptState.FAILED,
  },
  {
    name: "the time for which a pod has to be ready",
    contents: () => ({ resources: [aWorkloadEntry()], nodes: [aNode()], pods: readyPods() }),
    start: (view) => aWorkloadController(view, { stableMs: LIMIT_MS }),
    acted: (state) => attemptState(state) === AttemptState.SUCCEEDED,
  },
  {
    name: "the progress deadline of an apply that changed nothing",
    afterStartMs: LIMIT_MS,
    contents: () => ({
      resources: [aWorkloadEntry()],
      nodes: [aNode()],
      rollouts: [
        aRollout({
          createdAt: toTimestamp(START_MS),
          resources: [
            {
              ...{ kind: "container_service", name: "web", action: "unchanged", specHash: "h1" },
              status: RolloutStatus.IN_PROGRESS,
            },
          ],
        }),
      ],
    }),
    start: (view) =>
      new RolloutController({
        ...{ ...view, ...common, limits: limitsOf({ deadlineMs: LIMIT_MS }) },
        unschedulable: new UnschedulablePods({ nowMs: view.clock.nowMs, onChange: () => {} }),
        readyEndpoints: () => 0,
      }),
    acted: (state) => state.rollout("r-1")?.record.resources[0]?.status === RolloutStatus.FAILED,
  },
  {
    name: "the active deadline of a job",
    // 10 s for reports of completions from before the deadline.
    afterStartMs: 10_000,
    contents: () => ({
      resources: [aJobEntry({ spec: { jobConfig: { activeDeadlineSeconds: BigInt(LIMIT_MS / 1000) } } })],
      nodes: [aNode()],
    }),
    start: (view) => {
      const jobs = new JobReconciler({ ...view, ...common, held: () => false });
      return { evaluate: () => jobs.reconcile("shop/job/migrate") };
    },
    acted: (state) => jobStatusOf(state, "shop", "migrate")?.condition === "Failed",
  },
  {
    name: "the time for which a pod tolerates a taint",
    contents: () => ({ nodes: [aTaintedNode()], pods: [aTolerantPod()] }),
    start: (view) => new EvictionController({ ...view, ...common }),
    acted: (state) => state.pod("shop", "web-1")?.record.stoppingSince !== undefined,
  },
  {
    name: "the time-out of a drain",
    afterStartMs: LIMIT_MS,
    contents: () => ({ nodes: [aDrainedNode()], pods: [aPod({ kind: "job" })] }),
    start: (view) => new DrainController({ ...view, ...common, unschedulable: { get: () => undefined } }),
    acted: (state) => state.node("n1")?.record.drain?.failure !== "",
  },
  {
    name: "the deadline of a move",
    limitMs: 180_000,
    contents: () => ({ nodes: [aNode()], pods: [aMovedPod()] }),
    start: (view) =>
      new RebalanceController({
        ...{ ...view, ...common },
        suggest: () => {
          throw new Error("nothing is scheduled");
        },
      }),
    acted: (state) => state.pod("shop", "web-1")?.record.drainingSince === undefined,
  },
];

for (const { name, contents, limitMs = LIMIT_MS, start, acted } of DEADLINES)
  test(`${name} doesn't count time in which the store doesn't write`, async (t) => {
    const view = await aTimedView(t, contents());
    const { state, clock } = view;
    const running = start(view);
    t.after(() => running.close?.());
    const pass = async (ms: number): Promise<boolean> => {
      await running.evaluate?.();
      await clock.run(ms);
      await running.evaluate?.();
      return acted(state);
    };
    assert.equal(await pass(limitMs - MARGIN_MS), false, "before the standstill");
    const end = view.stall();
    assert.equal(await pass(STANDSTILL_MS), false, "during the standstill");
    await end();
    // One second passes before the coordinator notices that the store doesn't write.
    assert.equal(await pass(MARGIN_MS - 2_000), false, "after the standstill");
    assert.equal(await pass(4_000), true, "once the time is over");
  });

for (const { name, contents, afterStartMs, start, acted } of DEADLINES) {
  if (afterStartMs === undefined) continue;
  test(`${name} ends ${afterStartMs / 1000} s after a start of the coordinator`, async (t) => {
    const view = await aTimedView(t, contents());
    const { state, clock } = view;
    const first = start(view);
    await first.evaluate?.();
    await clock.run(1_000);
    await first.close?.();
    clock.advance(STANDSTILL_MS);
    const second = start({ ...view, time: new ActingTime({ clock }) });
    t.after(() => second.close?.());
    await second.evaluate?.();
    await clock.run(afterStartMs - MARGIN_MS);
    await second.evaluate?.();
    assert.equal(acted(state), false);
    await clock.run(2 * MARGIN_MS);
    await second.evaluate?.();
    assert.equal(acted(state), true);
  });
}

async function aTimedView(t: TestContext, contents: Contents) {
  const view = await aView(t, contents);
  const time = new ActingTime({ clock: view.clock });
  const stall = (): (() => Promise<void>) => {
    const held = Promise.withResolvers<{ succeeded: boolean; revision: number }>();
    const stalled = new Proxy(view.store, { get: () => () => held.promise });
    const written = time.tracked(stalled).txn([], []);
    return async () => {
      held.resolve({ succeeded: true, revision: 1 });
      await written;
    };
  };
  return { ...view, time, stall };
}

function limitsOf(limits: { deadlineMs?: number; placementMs?: number; stableMs?: number }) {
  return { deadlineMs: 3_600_000, placementMs: 3_600_000, stableMs: 0, ...limits };
}

function aWorkloadController(
  view: View,
  { waitsForNode = false, ...limits }: Parameters<typeof limitsOf>[0] & { waitsForNode?: boolean },
): WorkloadController {
  let names = 0;
  return new WorkloadController({
    ...{ ...view, ...common, limits: limitsOf(limits) },
    randomName: (length) => `${names++}`.padStart(length, "x"),
    pickVictims: (pods, count) => pods.slice(0, count),
    unschedulable: {
      get: () => (waitsForNode ? { summary: "no node fits", sinceMs: START_MS } : undefined),
      restart: () => {},
    },
  });
}

function attemptState(state: ClusterView): AttemptState | undefined {
  const status = state.workloadStatuses.all()[0]?.record.status;
  return status?.$case === "containerService" ? status.value.attempt?.state : undefined;
}

function readyPods() {
  const hash = aWorkloadEntry().applied?.templateHash ?? "";
  const status = { phase: PodPhase.RUNNING, ready: true };
  return ["a", "b"].map((name) => aPod({ name, hash, status, observedAtMs: START_MS }));
}

function aTaintedNode() {
  const node = aNode();
  node.record.taints = [
    NodeTaint.fromPartial({ key: "gpu", effect: "NoExecute", addedAt: toTimestamp(START_MS) }),
  ];
  return node;
}

function aTolerantPod() {
  const pod = aPod();
  const tolerations = [
    { key: "gpu", operator: "Exists", effect: "NoExecute", tolerationSeconds: BigInt(LIMIT_MS / 1000) },
  ];
  const { template } = pod.record;
  assert.ok(template);
  template.podConfig = PodConfig.fromPartial({ tolerations });
  return pod;
}

function aDrainedNode() {
  const node = aNode();
  node.record.drain = DrainRecord.fromPartial({
    startedAt: toTimestamp(START_MS),
    deadline: toTimestamp(START_MS + LIMIT_MS),
  });
  return node;
}

function aMovedPod() {
  const pod = aPod();
  return {
    ...pod,
    record: { ...pod.record, drainingSince: toTimestamp(START_MS), drainCause: "rebalance" },
  };
}
