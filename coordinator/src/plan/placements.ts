import type { PlannedPlacement, PlannedStep } from "@forage/proto/forage/operator/v1/operator";
import type { PodEntry } from "../state/entries.ts";
import type { LoggedStep } from "./sandbox.ts";

interface WhyUnplaced {
  get(uid: string): { readonly summary: string } | undefined;
}

/** Pure: the steps of one workload in one round, with the nodes of the pods that they made, in the order in which these came. */
export function placementsOf(
  steps: readonly LoggedStep[],
  made: readonly PodEntry[],
  unplaced: WhyUnplaced,
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
      placements: grouped(its, unplaced),
      detail: detailOf(pods > 0 ? rest : { count, ...rest }),
    };
  });
}

function grouped(pods: readonly PodEntry[], unplaced: WhyUnplaced): PlannedPlacement[] {
  const found = new Map<string, PlannedPlacement>();
  for (const { record } of pods) {
    const why = record.node === "" ? (unplaced.get(record.uid)?.summary ?? "") : "";
    const key = `${record.node}\n${why}`;
    found.set(key, { node: record.node, pods: (found.get(key)?.pods ?? 0) + 1, why });
  }
  return [...found.values()].sort((a, b) => (a.node < b.node ? -1 : 1));
}

/** `revision 3`, `index 2`, `state complete` */
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
