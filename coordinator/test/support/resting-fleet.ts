import type { TestContext } from "node:test";
import type { CapacityRequest, Supposition, WhatIfResponse } from "@forage/proto/forage/operator/v1/operator";
import type { ForageResource } from "@forage/proto/forest/v1/forage";
import { pino } from "pino";
import { applyResources } from "../../src/api/forage/apply.ts";
import { startControl } from "../../src/control/control.ts";
import { parseIpRange } from "../../src/ip/ip-range.ts";
import { recordStatuses } from "../../src/link/reports.ts";
import { MetricsCollector } from "../../src/metrics/metrics-collector.ts";
import { Planner } from "../../src/plan/planner.ts";
import { optimisticStatus } from "../../src/plan/simulated-nodes.ts";
import type { NodeEntry } from "../../src/state/entries.ts";
import { Trials } from "../../src/what-if/trials.ts";
import { aNode } from "./entries.ts";
import { aRequest } from "./requests.ts";
import { settled } from "./until.ts";
import { aView } from "./view.ts";

export type Change = Exclude<Supposition["supposition"], undefined>;

/** Returns a node for four pods of 500m, or for more with more cpu. */
export function aSizedNode(
  name: string,
  labels: Readonly<Record<string, string>> = {},
  cpu = "2",
): NodeEntry {
  const entry = aNode({ name, labels });
  const report = entry.report?.report;
  if (entry.report === undefined || report === undefined) throw new TypeError("the node has no report");
  const allocatable = { cpu, memory: "8Gi", pods: "110" };
  return { ...entry, report: { ...entry.report, report: { ...report, allocatable } } };
}

/** Longer than pods must stay ready for their rollout to end. */
const RESTING_MS = 5_000;

/** Starts nodes on which the resources run, and whose rollouts have ended. */
export async function aRestingFleet(
  t: TestContext,
  nodes: readonly NodeEntry[],
  resources: readonly ForageResource[],
) {
  const { store, state, clock } = await aView(t, { nodes });
  const log = pino({ level: "silent" });
  let names = 0;
  const randomName = (length: number): string => String(names++).padStart(length, "0");
  const ip = parseIpRange("10.96.0.0/16");
  if (ip === undefined) throw new TypeError("the range can't be read");
  const control = {
    randomName,
    profile: "pack",
    limits: { deadlineMs: 600_000, placementMs: 20_000, stableMs: 1_000 },
    addresses: { virtualIps: [ip], loadBalancerIps: [], nodePorts: { first: 30_000, last: 32_767 } },
  } as const;
  const metrics = new MetricsCollector({ state, clock, intervalMs: 15_000 });
  const running = startControl({
    ...control,
    ...{ store, state, clock, metrics, log },
    steps: { report: () => {} },
    events: { record: () => {} },
    readyEndpoints: () => 0,
  });
  if (resources.length > 0)
    await applyResources(aRequest("a1", resources, { app: "shop" }), { store, state, clock, randomName });
  for (let looks = 0; looks < 20; looks++) {
    for (let turns = 0; turns < 10; turns++) await settled();
    for (const { name } of state.nodes()) {
      const statuses = state.podsOnNode(name).flatMap((pod) => optimisticStatus(pod, true) ?? []);
      if (statuses.length > 0) await recordStatuses(name, statuses, { store, state, clock, log });
    }
  }
  await clock.run(RESTING_MS);
  // The fleet is idle; only the copies of dry runs change.
  await running.close();
  metrics.close();
  const planner = new Planner({
    ...{ store, state, nowMs: () => clock.nowMs(), control, apply: { randomName }, turn: settled },
  });
  const trials = new Trials({ state, planner });
  const podsOn = (name: string): number => state.podsOnNode(name).length;
  return {
    store,
    state,
    planner,
    podsOn,
    /** Returns how many pods fit on the other nodes. */
    free: (name: string): number =>
      nodes
        .filter((other) => other.name !== name)
        .reduce(
          (sum, other) => sum + 2 * Number(other.report?.report?.allocatable.cpu) - podsOn(other.name),
          0,
        ),
    whatIf: (...changes: readonly Change[]): Promise<WhatIfResponse> =>
      trials.whatIf({ suppositions: changes.map((supposition) => ({ supposition })) }, "tester"),
    capacity: (shape: CapacityRequest["shape"]) => trials.capacity({ shape }, "tester"),
  };
}
