import type { PodEntry } from "../state/entries.ts";

/** Reports whether the pod is ready: its node reports that it is, the node is reachable, and the pod is not stopping. */
export function isReady(pod: PodEntry, nodeReady: (name: string) => boolean): boolean {
  const { status, record } = pod;
  return (
    status?.ready === true &&
    record.stoppingSince === undefined &&
    record.node !== "" &&
    nodeReady(record.node)
  );
}
