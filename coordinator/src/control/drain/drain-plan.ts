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
  /** Undefined: it is none whose pods are replaced elsewhere, as a job, or it is gone. */
  readonly workload: (pod: PodEntry) => Workload | undefined;
  /** Returns the number of a workload's pods that are leaving nodes and have not been stopped yet. */
  readonly moving: (workloadKey: string) => number;
  /** Returns the reason why a pod that may leave has not been stopped. */
  readonly waitsFor: (pod: PodEntry, workload: Workload) => string;
}

/** A pod that is still there, and why. */
export interface Left {
  readonly pod: PodEntry;
  readonly why: string;
}

export interface DrainPlan {
  /** Pods to mark: they are replaced on other nodes and then stopped. */
  readonly mark: readonly PodEntry[];
  readonly stop: readonly Left[];
  readonly waiting: readonly Left[];
  /** Pods that can run nowhere else. They don't hold up the drain. */
  readonly staying: readonly Left[];
  /** Pods whose evaluation threw an error. They are also among `waiting`: the drain is not finished without them. */
  readonly failed: readonly { readonly pod: PodEntry; readonly error: unknown }[];
}

interface RolloutUpdate {
  readonly to: "mark" | "stop" | "wait" | "stay";
  readonly why: string;
}

/** Plans the stops of the pods of a drained node, and explains which pods stay. Pure. */
export function planDrain(input: DrainInput): DrainPlan {
  const plan = {
    mark: [] as PodEntry[],
    stop: [] as Left[],
    waiting: [] as Left[],
    staying: [] as Left[],
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
      verdict = { to: "wait", why: `the coordinator can't handle it: ${messageOf(error)}` };
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

/** Undefined: nothing of it runs any more. `marked`: pods of its workload that leave as of now. */
function verdictOn(pod: PodEntry, input: DrainInput, marked: number): RolloutUpdate | undefined {
  const { drain, nodeReady } = input;
  const { record } = pod;
  if (record.stoppingSince !== undefined) {
    const lost = `its node is unreachable and can't say that it has stopped: \`forage node remove ${record.node}\` gives it up`;
    return { to: "wait", why: nodeReady ? "it is stopping" : lost };
  }
  const workload = input.workload(pod);
  if (workload === undefined && hasEnded(pod)) return undefined;
  const tie = tieOf(pod);
  const cause = `its node ${record.node} is drained`;
  if (tie !== undefined) return drain.includeClaims ? { to: "stop", why: cause } : { to: "stay", why: tie };
  if (drain.force) return { to: "stop", why: cause };
  if (workload === undefined) return { to: "wait", why: "its job has yet to finish; --force stops it" };
  if (isDraining(pod)) return { to: "wait", why: input.waitsFor(pod, workload) };
  const moving = input.moving(pod.workloadKey) + marked;
  if (moving < budgetOf(workload).moving) return { to: "mark", why: "another is made in its place" };
  return { to: "wait", why: `waits for its turn: ${moving} of ${workload.name} leave before it` };
}

/** Reports whether all containers of the pod have ended, so that only its logs are left. */
function hasEnded({ status }: PodEntry): boolean {
  return status?.phase === PodPhase.SUCCEEDED || status?.phase === PodPhase.FAILED;
}
