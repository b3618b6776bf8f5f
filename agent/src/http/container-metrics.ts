import type { Registry } from "prom-client";
import Gauge from "prom-client/lib/gauge.js";
import type { PodStatus } from "../pods/decide/pod-status.ts";
import type { ContainerUsage } from "../runtime/runtime.ts";

export interface ContainerMetricSources {
  readonly statuses: () => readonly PodStatus[];
  /** Reads the container's usage from its cgroup. Returns undefined if it isn't running. */
  readonly usage: (containerId: string) => Promise<ContainerUsage | undefined>;
}

const LABELS = ["namespace", "pod", "container"] as const;

const FIGURES: readonly {
  readonly name: string;
  readonly help: string;
  readonly of: (usage: ContainerUsage) => number;
}[] = [
  {
    name: "forage_container_cpu_seconds_total",
    help: "CPU time of a running container since its start.",
    of: ({ cpuNanos }) => cpuNanos / 1e9,
  },
  {
    name: "forage_container_memory_bytes",
    help: "Memory of a running container, including its file cache.",
    of: ({ memoryBytes }) => memoryBytes,
  },
  {
    name: "forage_container_memory_working_set_bytes",
    help: "Memory of a running container less the file cache that could be dropped.",
    of: ({ workingSetBytes }) => workingSetBytes,
  },
  {
    name: "forage_container_oom_kills_total",
    help: "Processes of a running container that the kernel ended because memory ran out.",
    of: ({ oomKills }) => oomKills,
  },
];

interface Sample {
  readonly labels: { readonly namespace: string; readonly pod: string; readonly container: string };
  readonly usage: ContainerUsage;
}

/** Registers metrics of the usage of each running container. Each scrape reads each cgroup once. */
export function addContainerMetrics(registry: Registry, sources: ContainerMetricSources): void {
  let reading: Promise<readonly Sample[]> | undefined;
  const read = (): Promise<readonly Sample[]> => {
    reading ??= sample(sources).finally(() => {
      reading = undefined;
    });
    return reading;
  };
  for (const { name, help, of } of FIGURES) {
    new Gauge({
      name,
      help,
      labelNames: LABELS,
      registers: [registry],
      async collect() {
        const samples = await read();
        this.reset();
        for (const { labels, usage } of samples) this.set(labels, of(usage));
      },
    });
  }
}

async function sample({ statuses, usage }: ContainerMetricSources): Promise<readonly Sample[]> {
  const running = statuses().flatMap(({ namespace, name: pod, containers }) =>
    containers
      .filter(({ state }) => state.type === "running")
      .map(({ name: container, containerId }) => ({ labels: { namespace, pod, container }, containerId })),
  );
  const samples = await Promise.all(
    running.map(async ({ labels, containerId }) => ({
      labels,
      usage: await usage(containerId).catch(() => undefined),
    })),
  );
  return samples.flatMap((it) => (it.usage === undefined ? [] : [{ labels: it.labels, usage: it.usage }]));
}
