import type { FleetSeries, UsageSeries } from "../../src/dashboard/history-view.ts";
import { bytes, cores } from "../data/format.ts";
import { useSamples } from "../data/use-samples.ts";
import { Plot } from "./plot.tsx";

interface Graph {
  readonly title: string;
  readonly series: FleetSeries;
  readonly text: (value: number) => string;
}

/**
 * The least scale of CPU graphs in thousandths: an idle pod uses less than a hundredth of a
 * processor.
 */
const LEAST_TOP_MILLI = 10;

const count = (value: number): string => `${value}`;

const rate = (value: number): string => (value >= 10 ? value.toFixed(0) : value.toFixed(1));

const FLEET_GRAPHS: readonly Graph[] = [
  { title: "CPU, cores", series: "cpuMilli", text: cores },
  { title: "Memory", series: "memoryBytes", text: bytes },
  { title: "Pods ready", series: "podsReady", text: count },
  { title: "Restarts in 30 s", series: "restarts", text: count },
  { title: "Gateway requests/s", series: "requests", text: rate },
];

const TRAFFIC_GRAPHS: readonly Graph[] = [
  { title: "Gateway requests/s", series: "requests", text: rate },
  { title: "Gateway errors (5xx)/s", series: "errors", text: rate },
];

/** Shows the last hours of the fleet as graphs. */
export function FleetGraphs() {
  return <FleetHistory graphs={FLEET_GRAPHS} />;
}

/** Shows the requests that gateways answered in the last hours. Empty without a gateway. */
export function TrafficGraphs() {
  return <FleetHistory graphs={TRAFFIC_GRAPHS} />;
}

/**
 * Shows graphs of the fleet. Graphs without any value are omitted, such as those of requests
 * without a gateway.
 */
function FleetHistory({ graphs }: { readonly graphs: readonly Graph[] }) {
  const points = useSamples<FleetSeries>("history");
  if (points === undefined) return null;
  const known = graphs.filter(({ series }) => points[series].some((value) => value !== null));
  if (known.length === 0) return null;
  return (
    <div class="graphs">
      {known.map(({ title, series, text }) => (
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
  /** Selects the samples: of a node, or of a pod by its namespace and name. */
  readonly of: Readonly<Record<string, string>>;
}

/** Shows the CPU and memory that a node or a pod used in the last hours. */
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
