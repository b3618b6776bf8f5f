import { loadavg } from "node:os";
import { parseArgs } from "node:util";
import { latencies, memory } from "./latency.ts";
import { packing } from "./packing.ts";
import { type NodeCount, throughput } from "./throughput.ts";

const PARTS = ["throughput", "packing", "latency", "memory"] as const;

/**
 * `npm run bench -- scheduler [throughput|packing|latency|memory …]` prints a table for each part, then all figures in
 * one line of JSON.
 */
export async function main(): Promise<void> {
  const { positionals, values } = parseArgs({
    allowPositionals: true,
    options: { nodes: { type: "string", default: "1000,5000,50000" } },
  });
  const isSelected = (part: (typeof PARTS)[number]) => positionals.length === 0 || positionals.includes(part);
  const report: Record<string, unknown> = {
    bench: "scheduler",
    node: process.version,
    loadBefore: loadavg()[0],
  };
  if (isSelected("throughput")) {
    const counts = values.nodes.split(",").map(Number) as NodeCount[];
    report.throughput = counts.flatMap((nodes) => throughput("pack", nodes));
    report.throughputKube = throughput("kube-most", 5_000);
    show("Pods a second of cpu (pack), every node considered", report.throughput);
    show("The same with kube-scheduler's own scores (kube-most)", report.throughputKube);
  }
  if (isSelected("packing")) {
    report.packing = packing(["pack", "kube-most", "kube-least"]);
    show("Packing: used over the lower bound", report.packing);
  }
  if (isSelected("latency")) {
    report.latency = latencies(5_000);
    show("Explanation and preemption, ms of cpu (median)", [report.latency]);
  }
  if (isSelected("memory")) {
    report.memory = memory(5_000, 50_000);
    show("Memory, bytes", [report.memory]);
  }
  report.loadAfter = loadavg()[0];
  console.log(JSON.stringify(report));
}

function show(title: string, rows: unknown): void {
  console.log(`\n${title}`);
  console.table(
    (rows as readonly object[]).map((row) => Object.fromEntries(Object.entries(row).map(rounded))),
  );
}

function rounded([key, value]: [string, unknown]): [string, unknown] {
  return [key, typeof value === "number" && !Number.isInteger(value) ? Number(value.toFixed(3)) : value];
}
