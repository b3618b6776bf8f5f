import { toEpochMs } from "../../model/timestamp.ts";
import type { PodEntry } from "../../state/entries.ts";

/** The most important first, then the oldest; those made at one time by name, as in `byBinding`. */
export function byImportance(a: PodEntry, b: PodEntry): number {
  return b.record.priority - a.record.priority || createdMs(a) - createdMs(b) || (a.key < b.key ? -1 : 1);
}

/** The order in which pods were bound, as far as the records show it: pods that were bound at one time were so by their importance. */
export function byBinding(a: PodEntry, b: PodEntry): number {
  const boundMs = (pod: PodEntry): number => toEpochMs(pod.record.boundAt) ?? 0;
  return boundMs(a) - boundMs(b) || byImportance(a, b);
}

function createdMs(pod: PodEntry): number {
  return toEpochMs(pod.record.createdAt) ?? 0;
}
