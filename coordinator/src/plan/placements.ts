import type { PlannedPlacement, PlannedStep } from "@forage/proto/forage/operator/v1/operator";
import type { ReportedStep } from "../control/step-sink.ts";
import type { PodEntry } from "../state/entries.ts";

/** The facts that explain why pods are placed on their nodes. */
export interface PlacementFacts {
  readonly unschedulable: { get(uid: string): { readonly summary: string } | undefined };
  /** Returns the nodes that can run the pod, and the reasons that exclude the others. */
  readonly explainPlacement: (pod: PodEntry) => { readonly feasible: readonly string[] } | undefined;
}

/**
 * Returns the steps of one workload in one round, with the nodes of the pods that they created, in
 * the order of creation.
 */
export function placementsOf(
  steps: readonly ReportedStep[],
  made: readonly PodEntry[],
  facts: PlacementFacts,
): Omit<PlannedStep, "round">[] {
  let given = 0;
  return steps.map(({ workload: _, step, count, pod, why, ...rest }) => {
    const pods = step === "create-pods" ? Number(count) : step === "create-pod" ? 1 : 0;
    const its = made.slice(given, given + pods);
    given += pods;
    return {
      step,
      count: pods,
      pod: text(pod),
      why: text(why),
      placements: grouped(its, facts),
      detail: detailOf(pods > 0 ? rest : { count, ...rest }),
    };
  });
}

function grouped(pods: readonly PodEntry[], facts: PlacementFacts): PlannedPlacement[] {
  const found = new Map<string, PlannedPlacement>();
  for (const pod of pods) {
    const { node, uid } = pod.record;
    const key = node === "" ? `\n${facts.unschedulable.get(uid)?.summary ?? ""}` : node;
    const known = found.get(key);
    // Pods of one step are equal, so one explanation suffices for all of them on a node.
    const why = known?.why ?? (node === "" ? key.slice(1) : whyThere(pod, facts));
    found.set(key, { node, pods: (known?.pods ?? 0) + 1, why });
  }
  return [...found.values()].sort((a, b) => (a.node < b.node ? -1 : 1));
}

function whyThere(pod: PodEntry, { explainPlacement }: PlacementFacts): string {
  const feasible = explainPlacement(pod)?.feasible ?? [];
  // The pod itself now occupies space on its node, which may no longer be feasible.
  const nodes = new Set([...feasible, pod.record.node]).size;
  return nodes === 1 ? "the only node that fits" : `the best of ${nodes} nodes that fit`;
}

/** Formats the details of a step, such as `revision 3`, `index 2` or `state complete`. */
function detailOf(fields: Readonly<Record<string, unknown>>): string {
  return Object.entries(fields)
    .filter(([, value]) => value !== undefined && value !== "")
    .map(([name, value]) => `${name} ${text(value)}`)
    .join(", ");
}

function text(value: unknown): string {
  if (value === undefined || value === null) return "";
  return typeof value === "string" ? value : JSON.stringify(value);
}
