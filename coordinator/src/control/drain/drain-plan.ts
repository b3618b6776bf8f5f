import { messageOf } from "@forage/common/message-of";
import { PodPhase } from "@forage/proto/forage/agent/v1/agent";
import type { DrainRecord } from "@forage/proto/forage/store/v1/store";
import type { Workload } from "../../model/workload.ts";
import type { PodEntry } from "../../state/entries.ts";
import { tieOf } from "../../state/tied-pod.ts";
import { budgetOf } from "../workload/budget.ts";
import { isDraining } from "../workload/retire.ts";

export interface DrainInput {
  readonly drain: DrainRecord;
  readonly nodeReady: boolean;
  /** All pods on the node. */
  readonly pods: readonly PodEntry[];
  /** Returns the workload that replaces the pod elsewhere. Undefined: the pod is a job's, or its workload was removed. */
  readonly workload: (pod: PodEntry) => Workload | undefined;
  /** Returns the number of a workload's pods that are marked to leave their nodes and not stopping yet. */
  readonly moving: (workloadKey: string) => number;
  /** Returns the reason why a marked pod has not been stopped yet. */
  readonly waitsFor: (pod: PodEntry, workload: Workload) => string;
}

/** A pod that is still on the node, and the reason. */
export interface RemainingPod {
  readonly pod: PodEntry;
  readonly why: string;
}

export interface DrainPlan {
  /** Pods to mark: their workload replaces them on other nodes and then stops them. */
  readonly mark: readonly PodEntry[];
  readonly stop: readonly RemainingPod[];
  readonly waiting: readonly RemainingPod[];
  /** Pods that can run on no other node. They don't block the drain. */
  readonly staying: readonly RemainingPod[];
  /** Pods whose evaluation threw an error. They are also in `waiting`, because the drain is not finished without them. */
  readonly failed: readonly { readonly pod: PodEntry; readonly error: unknown }[];
}

interface RolloutUpdate {
  readonly to: "mark" | "stop" | "wait" | "stay";
  readonly why: string;
}

/** Plans which pods of a drained node to mark and to stop, and explains why the others stay. Pure. */
export function planDrain(input: DrainInput): DrainPlan {
  const plan = {
    mark: [] as PodEntry[],
    stop: [] as RemainingPod[],
    waiting: [] as RemainingPod[],
    staying: [] as RemainingPod[],
    failed: [] as { pod: PodEntry; error: unknown }[],
  };
  const marked = new Map<string, number>();
  for (const pod of input.pods) {
    const more = marked.get(pod.workloadKey) ?? 0;
    let verdict: RolloutUpdate | undefined;
    try {
      verdict = verdictOn(pod, input, more);
    } catch (error) {
      plan.failed.push({ pod, error });
      verdict = { to: "wait", why: `the coordinator can't evaluate it: ${messageOf(error)}` };
    }
    if (verdict === undefined) continue;
    const { to, why } = verdict;
    if (to === "mark") marked.set(pod.workloadKey, more + 1);
    if (to === "mark") plan.mark.push(pod);
    if (to === "stop") plan.stop.push({ pod, why });
    if (to === "stay") plan.staying.push({ pod, why });
    else plan.waiting.push({ pod, why });
  }
  return plan;
}

/**
 * Decides about one pod. Undefined: nothing of the pod runs any more. `marked` is the number of its workload's pods that
 * this plan marks.
 */
function verdictOn(pod: PodEntry, input: DrainInput, marked: number): RolloutUpdate | undefined {
  const { drain, nodeReady } = input;
  const { record } = pod;
  if (record.stoppingSince !== undefined) {
    const lost = `its node is unreachable, so the pod may still run: if the host is off, remove it with \`forage node remove ${record.node}\``;
    return { to: "wait", why: nodeReady ? "it is stopping" : lost };
  }
  const workload = input.workload(pod);
  if (workload === undefined && hasEnded(pod)) return undefined;
  const tie = tieOf(pod);
  const cause = `its node ${record.node} is drained`;
  if (tie !== undefined) return drain.includeClaims ? { to: "stop", why: cause } : { to: "stay", why: tie };
  if (drain.force) return { to: "stop", why: cause };
  if (workload === undefined) return { to: "wait", why: "its job is not complete; --force stops the pod" };
  if (isDraining(pod)) return { to: "wait", why: input.waitsFor(pod, workload) };
  const moving = input.moving(pod.workloadKey) + marked;
  if (moving < budgetOf(workload).moving) return { to: "mark", why: "a replacement is created" };
  return {
    to: "wait",
    why: `waits for the disruption budget: ${moving} other pods of ${workload.name} are moving`,
  };
}

/** Reports whether all containers of the pod have ended, so that only its logs are left. */
function hasEnded({ status }: PodEntry): boolean {
  return status?.phase === PodPhase.SUCCEEDED || status?.phase === PodPhase.FAILED;
}
