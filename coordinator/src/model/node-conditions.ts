import type { NodeReport } from "@forage/proto/forage/agent/v1/agent";

/** A condition reported by the node itself that keeps new pods off the node. Existing pods stay. */
export interface NodeProblem {
  /** The key of Kubernetes' taint for the condition. Its effect is NoSchedule. */
  readonly taint: string;
  readonly message: string;
}

/** Conditions that must be true. Unknown ones are ignored. */
const REQUIRED = ["RuntimeReady", "NetworkReady"];
const PRESSURES: Readonly<Record<string, string>> = { DiskPressure: "node.kubernetes.io/disk-pressure" };

export function nodeProblems(report: NodeReport | undefined): NodeProblem[] {
  const problems: NodeProblem[] = [];
  for (const { type, status, message, reason } of report?.conditions ?? []) {
    const taint =
      REQUIRED.includes(type) && !status
        ? "node.kubernetes.io/not-ready"
        : status
          ? PRESSURES[type]
          : undefined;
    if (taint !== undefined)
      problems.push({ taint, message: `${type}: ${message === "" ? reason : message}` });
  }
  return problems;
}
