import type {
  PlannedResource,
  PlannedStep,
  PlanResponse,
  UpdateRolloutRequest,
  UpdateRolloutResponse,
} from "@forage/proto/forage/operator/v1/operator";
import { type ApplyResourcesRequest, ForageResource, RolloutStatus } from "@forage/proto/forest/v1/forage";
import { type ApplyOptions, applyResources, bundleOf } from "../api/forage/apply.ts";
import type { BundleItem } from "../api/forage/bundle.ts";
import type { Control } from "../control/control.ts";
import { cronMessage } from "../control/cron/progress.ts";
import { isTerminal } from "../control/rollout/progress.ts";
import type { ReportedStep } from "../control/step-sink.ts";
import { resourceKey } from "../model/keys.ts";
import type { Labels } from "../model/labels.ts";
import type { ObjectName } from "../model/object-name.ts";
import { workloadKey } from "../model/workload.ts";
import type { ClusterView } from "../state/cluster-view.ts";
import { type Content, changedFields } from "./diff.ts";
import { missingObjectNotes } from "./missing-objects.ts";
import { placementsOf } from "./placements.ts";
import { Sandbox, type SandboxOptions } from "./sandbox.ts";

export interface PlanOptions extends SandboxOptions {
  /** The dependencies of an apply, except for the copy to which it writes. */
  readonly apply: Omit<ApplyOptions, "store" | "state" | "clock">;
}

/**
 * The most rounds. A job of thousands of pods needs thousands, but later rounds resemble the first
 * ones.
 */
const MAX_ROUNDS = 100;
const MAX_STEPS = 500;
/** The longest wait for events that depend only on time, such as a deadline or a retry. */
const MAX_WAIT_MS = 2 * 3600 * 1000;
const MAX_WAITS = 2_000;

interface Outcome {
  readonly steps: ReadonlyMap<string, readonly PlannedStep[]>;
  readonly cut: boolean;
  readonly control: Control;
  readonly rolloutId: string;
  readonly namespace: string;
  /** The state of the copy after the steps. */
  readonly state: ClusterView;
  /** The time of the planned apply. */
  readonly nowMs: number;
}

/** Returns what an apply of the validated request would do. Everything happens on a copy. */
export async function planApply(request: ApplyResourcesRequest, options: PlanOptions): Promise<PlanResponse> {
  const { namespace, labels } = request;
  const items = bundleOf(request, options.state);
  const changing = items.filter(({ action }) => action !== "unchanged");
  if (changing.length === 0)
    return { changes: false, resources: items.map((item) => plannedResource(item, namespace, labels)) };
  const sandbox = await Sandbox.open(options);
  try {
    const apply = { ...request, applyId: "plan" };
    const { store, state, clock } = sandbox;
    const { rolloutId } = await applyResources(apply, { ...options.apply, store, state, clock });
    const outcome = await tryOut(sandbox, { namespace, rolloutId, changing });
    return {
      changes: true,
      resources: items.map((item) => plannedResource(item, namespace, labels, outcome)),
    };
  } finally {
    await sandbox.close();
  }
}

/** The parts of a copy of the fleet to which a change is written. */
export type CopyOfFleet = Pick<Sandbox, "store" | "state" | "clock"> & Pick<ApplyOptions, "randomName">;

/**
 * Returns what a change of one resource's rollout would do. `change` writes it to the copy exactly
 * as to the fleet, and returns its description. Throws the errors of `change`.
 */
export async function planRollout(
  { namespace, kind, name }: Pick<UpdateRolloutRequest, "namespace" | "kind" | "name">,
  change: (copy: CopyOfFleet) => Promise<UpdateRolloutResponse>,
  options: PlanOptions,
): Promise<PlanResponse> {
  const sandbox = await Sandbox.open(options);
  try {
    const { store, state, clock } = sandbox;
    const existing = state.resource(resourceKey(namespace, kind, name));
    const { rolloutId, message } = await change({
      ...{ store, state, clock },
      randomName: options.apply.randomName,
    });
    const changed = state.resource(resourceKey(namespace, kind, name))?.record;
    const resource = changed?.resource ?? ForageResource.fromPartial({});
    const item = { kind, name, action: "update", resource, existing } as const;
    const outcome = await tryOut(sandbox, { namespace, rolloutId, changing: [item] });
    const planned = plannedResource(item, namespace, changed?.labels ?? {}, outcome);
    return { changes: true, resources: [{ ...planned, notes: [message, ...planned.notes] }] };
  } finally {
    await sandbox.close();
  }
}

interface WrittenChange {
  readonly namespace: string;
  readonly rolloutId: string;
  readonly changing: readonly Pick<BundleItem, "kind" | "name">[];
}

/**
 * Executes the steps that follow from a change of the copy. The controllers start after the change,
 * so that their first evaluation includes it.
 */
async function tryOut(sandbox: Sandbox, { namespace, rolloutId, changing }: WrittenChange): Promise<Outcome> {
  const { state, clock } = sandbox;
  const control = sandbox.start();
  const workloads = new Set(changing.map(({ kind, name }) => workloadKey(namespace, kind, name)));
  const steps = new Map<string, PlannedStep[]>();
  const nowMs = clock.nowMs();
  const untilMs = nowMs + MAX_WAIT_MS;
  const result = { steps, control, rolloutId, state, nowMs, namespace };
  let shown = 0;
  for (let round = 1, waits = 0; round <= MAX_ROUNDS && shown < MAX_STEPS; ) {
    const taken = (await sandbox.settle()).filter(({ workload }) => workloads.has(workload));
    addRound(taken, round, steps, sandbox, control);
    shown += taken.length;
    if (taken.length > 0) round++;
    if (await sandbox.report()) continue;
    const progress = control.rollouts.progress(rolloutId) ?? [];
    const over = taken.length === 0 && progress.every(({ status }) => isTerminal(status));
    if (over || ++waits > MAX_WAITS || !clock.next(untilMs)) return { ...result, cut: false };
  }
  return { ...result, cut: true };
}

function addRound(
  taken: readonly ReportedStep[],
  round: number,
  steps: Map<string, PlannedStep[]>,
  sandbox: Sandbox,
  control: Control,
): void {
  const byWorkload = new Map<string, ReportedStep[]>();
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
  { kind, name, action, resource, existing }: Omit<BundleItem, "key" | "specHash">,
  namespace: string,
  labels: Labels,
  outcome?: Outcome,
): PlannedResource {
  const before: Content | undefined =
    existing && !existing.record.deleting
      ? { resource: existing.record.resource, labels: existing.record.labels }
      : undefined;
  const after: Content | undefined = action === "remove" ? undefined : { resource, labels };
  // The fields of a created or deleted resource would only repeat the manifest.
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
  const end = cut ? "further steps follow; after these" : "stops here without a further change";
  return [`${end}: ${found.message}`, ...notes];
}

const ENDINGS: Partial<Record<RolloutStatus, string>> = {
  [RolloutStatus.FAILED]: "would fail",
  [RolloutStatus.ROLLED_BACK]: "would be rolled back",
};
