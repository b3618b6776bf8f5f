import { toEpochMs } from "../../model/timestamp.ts";
import type { PodEntry } from "../../state/entries.ts";

/** Compares pods for placement: the most important first, then the oldest, then by name. */
export function byImportance(a: PodEntry, b: PodEntry): number {
  return b.record.priority - a.record.priority || createdMs(a) - createdMs(b) || (a.key < b.key ? -1 : 1);
}

/**
 * Compares pods by the time of their binding. Pods that were bound at the same time are ordered by importance, as they were
 * placed.
 */
export function byBinding(a: PodEntry, b: PodEntry): number {
  const boundMs = (pod: PodEntry): number => toEpochMs(pod.record.boundAt) ?? 0;
  return boundMs(a) - boundMs(b) || byImportance(a, b);
}

function createdMs(pod: PodEntry): number {
  return toEpochMs(pod.record.createdAt) ?? 0;
}
