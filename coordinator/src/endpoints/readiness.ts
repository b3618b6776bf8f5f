import type { PodEntry } from "../state/entries.ts";

/** A pod serves when its node says so, the node is there, and it isn't on its way out. */
export function isReady(pod: PodEntry, nodeReady: (name: string) => boolean): boolean {
  const { status, record } = pod;
  return (
    status?.ready === true &&
    record.stoppingSince === undefined &&
    record.node !== "" &&
    nodeReady(record.node)
  );
}
