import type { PlannedResource, PlannedStep, PlanResponse } from "@forage/proto/forage/operator/v1/operator";
import type { ApplyResourcesRequest } from "@forage/proto/forest/v1/forage";
import { RolloutStatus } from "@forage/proto/forest/v1/forage";
import { type ApplyOptions, applyResources, bundleOf } from "../api/forage/apply.ts";
import type { BundleItem } from "../api/forage/bundle.ts";
import type { Control } from "../control/control.ts";
import { cronMessage } from "../control/cron/progress.ts";
import { isTerminal } from "../control/rollout/progress.ts";
import type { TakenStep } from "../control/step-sink.ts";
import { resourceKey } from "../model/keys.ts";
import type { ObjectName } from "../model/object-name.ts";
import { workloadKey } from "../model/workload.ts";
import type { ClusterView } from "../state/cluster-view.ts";
import { type Content, changedFields } from "./diff.ts";
import { missingObjectNotes } from "./missing-objects.ts";
import { placementsOf } from "./placements.ts";
import { Sandbox, type SandboxOptions } from "./sandbox.ts";

export interface PlanOptions extends SandboxOptions {
  /** The dependencies of an apply, except for the copy that it writes to. */
  readonly apply: Omit<ApplyOptions, "store" | "state" | "clock">;
}

/** A job of thousands of pods takes thousands of rounds, and later rounds look like the first ones. */
const MAX_ROUNDS = 100;
const MAX_STEPS = 500;
/** The limit of a wait for something that only time brings, such as a deadline or another attempt. */
const MAX_WAIT_MS = 2 * 3600 * 1000;
const MAX_WAITS = 2_000;

interface Outcome {
  readonly steps: ReadonlyMap<string, readonly PlannedStep[]>;
  readonly cut: boolean;
  readonly control: Control;
  readonly rolloutId: string;
  readonly namespace: string;
  /** The copy's state after the steps. */
  readonly state: ClusterView;
  /** The time of the planned apply. */
  readonly nowMs: number;
}

/** Returns what an apply of the validated request would do. Everything happens on a copy. */
export async function planApply(request: ApplyResourcesRequest, options: PlanOptions): Promise<PlanResponse> {
  const items = bundleOf(request, options.state);
  const changing = items.filter(({ action }) => action !== "unchanged");
  if (changing.length === 0)
    return { changes: false, resources: items.map((item) => plannedResource(item, request, undefined)) };
  const sandbox = await Sandbox.open(options);
  try {
    const outcome = await tryOut(request, changing, sandbox, options);
    return { changes: true, resources: items.map((item) => plannedResource(item, request, outcome)) };
  } finally {
    await sandbox.close();
  }
}

/** The resources are written before the controllers start, so that their first look sees them. */
async function tryOut(
  request: ApplyResourcesRequest,
  changing: readonly BundleItem[],
  sandbox: Sandbox,
  { apply }: PlanOptions,
): Promise<Outcome> {
  const { store, state, clock } = sandbox;
  const { rolloutId } = await applyResources(
    { ...request, applyId: "plan" },
    { ...apply, store, state, clock },
  );
  const control = sandbox.start();
  const workloads = new Set(changing.map(({ kind, name }) => workloadKey(request.namespace, kind, name)));
  const steps = new Map<string, PlannedStep[]>();
  const nowMs = clock.nowMs();
  const untilMs = nowMs + MAX_WAIT_MS;
  const result = { steps, control, rolloutId, state, nowMs, namespace: request.namespace };
  let told = 0;
  for (let round = 1, waits = 0; round <= MAX_ROUNDS && told < MAX_STEPS; ) {
    const taken = (await sandbox.settle()).filter(({ workload }) => workloads.has(workload));
    addRound(taken, round, steps, sandbox, control);
    told += taken.length;
    if (taken.length > 0) round++;
    if (await sandbox.report()) continue;
    const progress = control.rollouts.progress(rolloutId) ?? [];
    const over = taken.length === 0 && progress.every(({ status }) => isTerminal(status));
    if (over || ++waits > MAX_WAITS || !clock.next(untilMs)) return { ...result, cut: false };
  }
  return { ...result, cut: true };
}

function addRound(
  taken: readonly TakenStep[],
  round: number,
  steps: Map<string, PlannedStep[]>,
  sandbox: Sandbox,
  control: Control,
): void {
  const byWorkload = new Map<string, TakenStep[]>();
  for (const step of taken) byWorkload.set(step.workload, [...(byWorkload.get(step.workload) ?? []), step]);
  for (const [workload, its] of byWorkload) {
    const planned = placementsOf(its, sandbox.newPodsOf(workload), control).map((step) => ({
      ...step,
      round,
    }));
    steps.set(workload, [...(steps.get(workload) ?? []), ...planned]);
  }
}

function plannedResource(
  { kind, name, action, resource, existing }: BundleItem,
  { namespace, labels }: ApplyResourcesRequest,
  outcome: Outcome | undefined,
): PlannedResource {
  const before: Content | undefined =
    existing && !existing.record.deleting
      ? { resource: existing.record.resource, labels: existing.record.labels }
      : undefined;
  const after: Content | undefined = action === "remove" ? undefined : { resource, labels };
  // All of what comes into being or goes would say no more than the manifest.
  const compared = action === "update" && before !== undefined;
  return {
    kind,
    name,
    action,
    changes: compared ? changedFields(before, after) : [],
    steps: [...(outcome?.steps.get(workloadKey(namespace, kind, name)) ?? [])],
    notes: action === "unchanged" || outcome === undefined ? [] : notesOf({ kind, name, action }, outcome),
  };
}

/** Returns notes on a bad outcome, on missing objects, and on steps beyond the reported ones. */
function notesOf(item: Pick<BundleItem, "kind" | "name" | "action">, outcome: Outcome): string[] {
  const { control, rolloutId, cut, state, namespace, nowMs } = outcome;
  const { kind, name, action } = item;
  const entry = action === "remove" ? undefined : state.resource(resourceKey(namespace, kind, name));
  const exists = (object: ObjectName): boolean => state.objects.get(object) !== undefined;
  const missing = entry === undefined ? [] : missingObjectNotes(entry.record, exists);
  const schedule = entry && cronMessage(entry, nowMs);
  const notes = [...(schedule === undefined ? [] : [schedule]), ...missing];
  const found = control.rollouts.progress(rolloutId)?.find((it) => it.kind === kind && it.name === name);
  if (found === undefined) return notes;
  const word = ENDINGS[found.status];
  if (word !== undefined) return [`${word}: ${found.message}`, ...notes];
  if (isTerminal(found.status)) return notes;
  const end = cut ? "and so on; after these steps" : "goes no further by itself";
  return [`${end}: ${found.message}`, ...notes];
}

const ENDINGS: Partial<Record<RolloutStatus, string>> = {
  [RolloutStatus.FAILED]: "would fail",
  [RolloutStatus.ROLLED_BACK]: "would be rolled back",
};
