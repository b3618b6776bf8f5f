import type { Clock } from "../clock.ts";
import type { ContainerStatus, PodStatus } from "../pods/decide/pod-status.ts";
import type { ContainerUsage } from "../runtime/runtime.ts";
import { type CpuRate, type CpuReading, cpuRate } from "./cpu-rate.ts";

export type UsageReading = CpuReading;

export interface Usage {
  /** The CPU rate. Undefined until there is a second reading. */
  readonly rate: CpuRate | undefined;
  /** The working set. Undefined if it is unknown for a container. */
  readonly memoryBytes: number | undefined;
  /** The reading to pass to the next call. */
  readonly reading: UsageReading;
}

/** Returns the total usage of the pod's running containers, from their cgroups. Init containers have ended by then. */
export async function measureUsage(
  { containers }: PodStatus,
  before: UsageReading | undefined,
  clock: Clock,
  readUsage: (containerId: string) => Promise<ContainerUsage | undefined>,
): Promise<Usage> {
  const running = containers.filter(({ init, state }) => !init && state.type === "running");
  const usages = await Promise.all(
    running.map(async (container) => ({
      container,
      usage: await readUsage(container.containerId).catch(() => undefined),
    })),
  );
  const known = usages.flatMap(({ container, usage }) => (usage === undefined ? [] : [{ container, usage }]));
  const reading = {
    atMs: clock.monotonicMs(),
    nanos: new Map(known.map(({ container, usage }) => [container.containerId, usage.cpuNanos])),
  };
  // Incomplete usage is not reported.
  if (known.length === 0 || known.length < usages.length) {
    return { rate: undefined, memoryBytes: undefined, reading };
  }
  const nowMs = clock.nowMs();
  const ages = new Map(running.map((it) => [it.containerId, nowMs - startedAtMs(it, nowMs)]));
  return {
    rate: cpuRate(before, reading, (id) => ages.get(id) ?? Number.POSITIVE_INFINITY),
    memoryBytes: known.reduce((sum, { usage }) => sum + usage.workingSetBytes, 0),
    reading,
  };
}

function startedAtMs({ state }: ContainerStatus, nowMs: number): number {
  return state.type === "running" ? state.startedAtMs : nowMs;
}
