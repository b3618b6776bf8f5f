import { fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { systemClock } from "../../agent/src/clock.ts";
import { ProbeRunner } from "../../agent/src/probes/probe-runner.ts";
import type { ProbeHandler, ProbeSpec } from "../../agent/src/probes/probe-spec.ts";
import { probeOver } from "../../agent/src/probes/run-probe.ts";

const PERIOD_MS = 10_000;
const KINDS = ["none", "tcp", "http", "grpc"] as const;

interface Cost {
  readonly handler: string;
  readonly probes: number;
  readonly cpuMsPerProbe: number;
  /** The share of one core. */
  readonly cpuPercent: number;
}

/** Measures what probes cost the agent: `probes [--pods N] [--seconds N]`. Each pod has two probes every 10 s. */
export async function main(): Promise<void> {
  const { values } = parseArgs({
    options: { pods: { type: "string", default: "40" }, seconds: { type: "string", default: "30" } },
  });
  const server = fork(join(import.meta.dirname, "serve.ts"));
  try {
    const [ports] = (await once(server, "message")) as [{ http: number; grpc: number }];
    const costs: Cost[] = [];
    console.log(["probe", "made", "CPU ms each", "CPU % of a core"].map((it) => it.padStart(16)).join(""));
    for (const kind of KINDS) {
      const cost = await measure(kind, ports, Number(values.pods), Number(values.seconds) * 1000);
      costs.push(cost);
      console.log(
        Object.values(cost)
          .map((it) => String(it).padStart(16))
          .join(""),
      );
    }
    console.log(JSON.stringify({ bench: "probes", pods: Number(values.pods), periodMs: PERIOD_MS, costs }));
  } finally {
    server.kill();
  }
}

async function measure(
  kind: (typeof KINDS)[number],
  ports: { readonly http: number; readonly grpc: number },
  pods: number,
  durationMs: number,
): Promise<Cost> {
  const run = probeOver(systemClock);
  let probes = 0;
  const runner = new ProbeRunner({
    clock: systemClock,
    onChange: () => undefined,
    run(...args) {
      probes += 1;
      return run(...args);
    },
  });
  const spec = kind === "none" ? undefined : specOf(handlerOf(kind, ports));
  const watched = spec === undefined ? {} : { liveness: spec, readiness: spec };
  const target = { address: "127.0.0.1", exec: () => Promise.reject(new Error("not to be run")) };
  for (let pod = 0; pod < pods; pod += 1) {
    // As after the agent's restart, the probes are spread over the whole period.
    const before = { started: true, ready: true };
    runner.watch({ id: `pod-${pod}`, probes: watched, target, startedAtMs: Date.now(), before });
  }
  // The first round warms up compiled and loaded code.
  await pause(spec === undefined ? 0 : PERIOD_MS);
  probes = 0;
  const [beforeCpu, beganMs] = [process.cpuUsage(), performance.now()];
  await pause(durationMs);
  const { user, system } = process.cpuUsage(beforeCpu);
  const cpuMs = (user + system) / 1000;
  const cpuPercent = round((cpuMs / (performance.now() - beganMs)) * 100);
  await runner.close();
  return { handler: kind, probes, cpuMsPerProbe: probes === 0 ? 0 : round(cpuMs / probes), cpuPercent };
}

function handlerOf(
  kind: "tcp" | "http" | "grpc",
  ports: { readonly http: number; readonly grpc: number },
): ProbeHandler {
  switch (kind) {
    case "tcp":
      return { type: "tcp", port: ports.http };
    case "http":
      return { type: "http", scheme: "HTTP", port: ports.http, path: "/healthz", headers: [] };
    case "grpc":
      return { type: "grpc", port: ports.grpc, service: "" };
    default:
      return kind satisfies never;
  }
}

function specOf(handler: ProbeHandler): ProbeSpec {
  return {
    handler,
    initialDelayMs: 0,
    periodMs: PERIOD_MS,
    timeoutMs: 1_000,
    successThreshold: 1,
    failureThreshold: 3,
  };
}

function pause(durationMs: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, durationMs));
}

function round(value: number): number {
  return Math.round(value * 1000) / 1000;
}
