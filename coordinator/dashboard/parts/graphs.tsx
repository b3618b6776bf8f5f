import type { FleetSeries, UsageSeries } from "../../src/dashboard/history-view.ts";
import { useApp } from "../data/app.ts";
import { bytes, cores } from "../data/format.ts";
import type { Live } from "../data/live.ts";
import { useHistory, useSamples } from "../data/use-history.ts";
import { Plot } from "./plot.tsx";

interface Graph {
  readonly title: string;
  readonly series: FleetSeries;
  readonly text: (value: number) => string;
}

/** An idle pod uses less than a hundredth of a processor. */
const LEAST_TOP_MILLI = 10;

const count = (value: number): string => `${value}`;

const GRAPHS: readonly Graph[] = [
  { title: "CPU in use, cores", series: "cpuMilli", text: cores },
  { title: "Memory in use", series: "memoryBytes", text: bytes },
  { title: "Pods ready", series: "podsReady", text: count },
  { title: "Restarts of containers", series: "restarts", text: count },
];

/** The last hours of the fleet. */
export function Graphs() {
  const { live } = useApp();
  const points = useHistory<FleetSeries>("history", () => presentOf(live));
  if (points === undefined) return null;
  return (
    <div class="graphs">
      {GRAPHS.map(({ title, series, text }) => (
        <Plot
          key={series}
          title={title}
          times={points.times}
          lines={[{ name: series, values: points[series] }]}
          text={text}
        />
      ))}
    </div>
  );
}

export interface UsageGraphsProps {
  /** Chooses the samples: a node, or a pod with its namespace. */
  readonly of: Readonly<Record<string, string>>;
}

/** What a node or a pod used in the last hours. */
export function UsageGraphs({ of }: UsageGraphsProps) {
  const points = useSamples<UsageSeries>(`usage?${new URLSearchParams(of)}`);
  if (points === undefined) return null;
  return (
    <section class="graphs" aria-label="Usage">
      <Plot
        title="CPU in use, cores"
        times={points.times}
        lines={[{ name: "cpuMilli", values: points.cpuMilli }]}
        text={cores}
        leastTop={LEAST_TOP_MILLI}
      />
      <Plot
        title="Memory in use"
        times={points.times}
        lines={[{ name: "memoryBytes", values: points.memoryBytes }]}
        text={bytes}
      />
    </section>
  );
}

function presentOf(live: Live): Readonly<Record<FleetSeries, number>> | undefined {
  if (live.connection !== "live") return undefined;
  const nodes = live.rows("nodes");
  const pods = live.rows("pods");
  const sum = (values: readonly number[]) => values.reduce((all, value) => all + value, 0);
  return {
    nodesReady: nodes.filter(({ state }) => state === "Ready").length,
    podsReady: pods.filter(({ tone }) => tone === "good").length,
    pods: pods.length,
    cpuMilli: sum(nodes.map(({ usage }) => usage?.[0] ?? 0)),
    memoryBytes: sum(nodes.map(({ usage }) => usage?.[1] ?? 0)),
    restarts: sum(pods.map(({ restarts }) => restarts)),
  };
}
