import type { PodMetricsSample } from "@forage/proto/forage/agent/v1/agent";

/**
 * The number of consecutive samples that may be omitted. The coordinator keeps a sample for longer than that, so that a
 * lost one does no harm.
 */
export const LEFT_OUT_MAX = 3;
const MILLICORE_NANOS = 1_000_000n;
const MEMORY_STEP_BYTES = 256n * 1024n;
/** A change below this fraction (one in 50) is not sent. */
const PARTS = 50n;

/** Reports whether CPU or memory of a pod differs noticeably from the sample that was sent last. */
export function hasChanged(sent: PodMetricsSample, now: PodMetricsSample): boolean {
  return (
    differs(sent.cpuNanoCores, now.cpuNanoCores, MILLICORE_NANOS) ||
    differs(sent.memoryBytes, now.memoryBytes, MEMORY_STEP_BYTES)
  );
}

function differs(before: bigint | undefined, now: bigint | undefined, step: bigint): boolean {
  if (before === undefined || now === undefined) return before !== now;
  const difference = before < now ? now - before : before - now;
  return difference >= step && difference * PARTS >= before;
}
