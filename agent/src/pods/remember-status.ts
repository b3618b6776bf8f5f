import type { ProbeVerdict } from "../probes/probe-machine.ts";
import type { PodStatus } from "./decide/pod-status.ts";
import { memoryOf, type Pod, type PodMemory, withContainer } from "./pod.ts";

/** Records when the pod started and when it last became ready. Returns the same object if nothing changed. */
export function withTimes(memory: PodMemory, status: PodStatus, nowMs: number): PodMemory {
  const { readyAtMs, ...rest } = memory;
  const startedAtMs = memory.startedAtMs ?? (status.phase === "RUNNING" ? nowMs : undefined);
  const nextReadyAtMs = status.ready ? (readyAtMs ?? nowMs) : undefined;
  if (startedAtMs === memory.startedAtMs && nextReadyAtMs === readyAtMs) return memory;
  return {
    ...rest,
    ...(startedAtMs === undefined ? {} : { startedAtMs }),
    ...(nextReadyAtMs === undefined ? {} : { readyAtMs: nextReadyAtMs }),
  };
}

/**
 * Records the probes' verdicts, so that a restarted agent has them at once. Returns the same object if nothing changed.
 */
export function withHealth(
  memory: PodMemory,
  pod: Pod,
  verdicts: ReadonlyMap<string, ProbeVerdict>,
): PodMemory {
  let next = memory;
  for (const { name } of pod.containers) {
    const known = memoryOf(memory, name);
    const verdict = known.containerId === undefined ? undefined : verdicts.get(known.containerId);
    if (verdict === undefined) continue;
    const { started, ready } = verdict;
    if (known.health?.started === started && known.health.ready === ready) continue;
    next = withContainer(next, name, { ...known, health: { started, ready } });
  }
  return next;
}
