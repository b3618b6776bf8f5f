import type { WhatIfResponse, WorkloadShort } from "@forage/proto/forage/operator/v1/operator";
import { workloadKey } from "../model/workload.ts";
import { isShort, newlyWaiting } from "./outcome.ts";

/** The effect of the loss of one node. */
export interface LossVerdict {
  readonly node: string;
  /** The pods that would newly wait for a node, by workload key. */
  readonly waiting: ReadonlyMap<string, { readonly pods: number; readonly why?: string }>;
  readonly short: readonly WorkloadShort[];
  readonly isSafe: boolean;
  readonly isEstimated: boolean;
  /** The complete effect; undefined if the loss was not simulated with all controllers. */
  readonly outcome?: WhatIfResponse;
}

/** Returns the verdict of a simulation with all controllers. */
export function verdictOf(node: string, outcome: WhatIfResponse): LossVerdict {
  const waiting = new Map<string, { pods: number; why?: string }>();
  const short: WorkloadShort[] = [];
  for (const workload of outcome.workloads) {
    const { namespace, kind, name, readyBefore, readyLowest, minimum = 0 } = workload;
    const pods = newlyWaiting(workload);
    const why = workload.waiting.find((it) => it.pods > it.already)?.why;
    if (pods > 0)
      waiting.set(workloadKey(namespace, kind, name), { pods, ...(why !== undefined && { why }) });
    if (isShort(workload)) short.push({ namespace, kind, name, readyBefore, readyLowest, minimum });
  }
  return { node, waiting, short, isSafe: outcome.safe, isEstimated: false, outcome };
}

/**
 * Compares verdicts, the worst first: the most waiting pods, then the most services below their
 * minimum.
 */
export function compareHarm(a: LossVerdict, b: LossVerdict): number {
  return (
    Number(a.isSafe) - Number(b.isSafe) ||
    waitingPods(b) - waitingPods(a) ||
    b.short.length - a.short.length ||
    missingPods(b) - missingPods(a) ||
    (a.node < b.node ? -1 : 1)
  );
}

export function waitingPods({ waiting }: LossVerdict): number {
  return [...waiting.values()].reduce((sum, { pods }) => sum + pods, 0);
}

function missingPods({ short }: LossVerdict): number {
  return short.reduce((sum, { minimum, readyLowest }) => sum + minimum - readyLowest, 0);
}
