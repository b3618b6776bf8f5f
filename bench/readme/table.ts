/** A row of README's table. `names` are figures of the benchmark `apply`. */
interface Row {
  readonly title: string;
  readonly names: readonly string[];
  readonly unit: "s" | "MB" | "% of a core";
  /** The figure of bare nerdctl. */
  readonly floor?: string;
  /** The figure of Docker Swarm, which was measured once. */
  readonly swarm: string;
}

export const TABLE_HEAD: readonly string[] = [
  "| what | Forage | floor | Docker Swarm 20.10 |",
  "| --- | --- | --- | --- |",
];

const ROWS: readonly Row[] = [
  { title: "apply → 1 replica ready", names: ["apply → 1 ready (s)"], unit: "s", swarm: "" },
  {
    title: "apply → 20 replicas ready",
    names: ["apply → 20 ready (s)"],
    unit: "s",
    floor: "floor: 20 × nerdctl run (s)",
    swarm: "3.7–3.9 s",
  },
  { title: "scale 20 → 40, ready", names: ["scale 20 → 40 ready (s)"], unit: "s", swarm: "3.0 s" },
  { title: "apply → 40 replicas ready", names: ["apply → 40 ready (s)"], unit: "s", swarm: "" },
  {
    title: "container killed → its successor runs",
    names: ["kill → running (s)"],
    unit: "s",
    floor: "floor: 1 × nerdctl run (s)",
    swarm: "0.6 s at best, 5.6 s by default",
  },
  {
    title: "agent's resident memory, no pods / 40 pods",
    names: ["agent resident, no pods (MB)", "agent resident, 40 pods (MB)"],
    unit: "MB",
    swarm: "122 MB + containerd 47 MB at 40",
  },
  {
    title: "coordinator's resident memory, no pods / 40 pods",
    names: ["coordinator resident, no pods (MB)", "coordinator resident, 40 pods (MB)"],
    unit: "MB",
    swarm: "",
  },
  {
    title: "agent's CPU over the 30 seconds after 40 pods became ready",
    names: ["agent idle, 40 pods (% of a core)"],
    unit: "% of a core",
    swarm: "0.6 %",
  },
  {
    title: "coordinator's CPU, likewise",
    names: ["coordinator idle, 40 pods (% of a core)"],
    unit: "% of a core",
    swarm: "",
  },
];

/** Returns the lines of README's table with the figures of a run. Throws if a figure is missing. */
export function readmeTable(figures: Readonly<Record<string, number>>): readonly string[] {
  const figureOf = (name: string): number => {
    const value = figures[name];
    if (value === undefined) throw new Error(`the benchmark did not measure "${name}"`);
    return value;
  };
  const rows = ROWS.map(({ title, names, unit, floor, swarm }) => {
    const own = `${names.map((name) => rounded(figureOf(name), unit)).join(" / ")} ${unit}`;
    const bare = floor === undefined ? "" : `${rounded(figureOf(floor), unit)} ${unit}`;
    return `| ${[title, own, bare, swarm].join(" | ")} |`.replaceAll("|  |", "| |").replaceAll("|  |", "| |");
  });
  return [...TABLE_HEAD, ...rows];
}

/** Returns the figure with two significant digits. Runs on one machine agree no further. */
function rounded(value: number, unit: Row["unit"]): string {
  if (unit === "MB") return value.toFixed(0);
  if (unit === "s" && value < 1) return value.toFixed(2);
  return value.toFixed(1);
}
