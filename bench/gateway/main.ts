import { fork } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { findProcesses } from "../../hack/lib/process-identity.ts";
import { BenchGateway, type Service, type Update } from "./bench-gateway.ts";
import { measureLoad, quantile } from "./load.ts";

const CLOCK_TICK_MS = 10;
const HOST = "h0.example.com";
const HTTP_PORT = 18_480;

type Host = NonNullable<Update["hosts"]>[number];

/**
 * Measures the cost of a gateway: `gateway [--hosts N] [--changes N] [--connections N] [--seconds N]`. Each host has a service.
 */
export async function main(): Promise<void> {
  const number = (value: string) => ({ type: "string", default: value }) as const;
  const options = {
    hosts: number("100"),
    changes: number("40"),
    connections: number("32"),
    seconds: number("10"),
  };
  const { values } = parseArgs({ options });
  const [hosts, changes, connections, seconds] = [
    Number(values.hosts),
    Number(values.changes),
    Number(values.connections),
    Number(values.seconds),
  ];
  const server = fork(join(import.meta.dirname, "serve.ts"));
  const hooks: (() => Promise<void>)[] = [];
  try {
    const [port] = (await once(server, "message")) as [number];
    const gateway = await BenchGateway.start(HTTP_PORT);
    hooks.push(() => gateway.close());
    await fill(gateway, hosts, port);
    const pid = pidOf(gateway);
    const changed = await measureChanges(gateway, hosts, changes, pid);
    const direct = await measureLoad({ port, host: HOST }, connections, seconds * 1000);
    const beforeMs = cpuMs(pid);
    const through = await measureLoad({ port: HTTP_PORT, host: HOST }, connections, seconds * 1000);
    const cpuMicros = Math.round(((cpuMs(pid) - beforeMs) * 1000) / through.requests);
    const residentMb = Math.round(residentKb(pid) / 1024);
    console.table({ direct, "through Envoy": { ...through, cpuMicros } });
    console.table({ "a change of one route": changed });
    console.log(
      JSON.stringify({
        bench: "gateway",
        hosts,
        connections,
        direct,
        through,
        cpuMicros,
        changed,
        residentMb,
      }),
    );
  } finally {
    for (const hook of hooks) await hook();
    server.kill();
  }
}

function hostOf(index: number, path: string): Host {
  const backends = [{ namespace: "bench", service: `s${index}`, port: 80, weight: 1 }];
  const rules = [path, "/a", "/b", "/"].map((value) => {
    return { backends, route: "bench/route", match: { path: { value } } };
  });
  return { hostname: `h${index}.example.com`, rules };
}

function serviceOf(index: number, port: number): Service {
  const endpoint = { node: "n1", hostIp: "127.0.0.1", hostNetwork: true, hostPorts: [port] };
  const ports = [{ name: "http", port: 80, protocol: "TCP", targetPort: port }];
  return { namespace: "bench", name: `s${index}`, ports, endpoints: [endpoint] };
}

async function fill(gateway: BenchGateway, hosts: number, port: number): Promise<void> {
  const all = Array.from({ length: hosts }, (_, index) => index);
  gateway.serve(...all.map((index) => serviceOf(index, port)));
  await gateway.apply({ full: true, hosts: all.map((index) => hostOf(index, "/x")) });
}

async function measureChanges(gateway: BenchGateway, hosts: number, changes: number, pid: number) {
  const tookMs: number[] = [];
  const [envoyMs, own] = [cpuMs(pid), process.cpuUsage()];
  for (let change = 0; change < changes; change++) {
    const beginMs = performance.now();
    await gateway.apply({ hosts: [hostOf(change % hosts, `/v${change}`)] });
    tookMs.push(performance.now() - beginMs);
  }
  const { user, system } = process.cpuUsage(own);
  return {
    p50Ms: quantile(tookMs, 0.5),
    p99Ms: quantile(tookMs, 0.99),
    envoyCpuMs: Math.round((cpuMs(pid) - envoyMs) / changes),
    agentCpuMs: Math.round((user + system) / 1000 / changes),
  };
}

function pidOf({ bootstrap }: BenchGateway): number {
  const [found] = findProcesses((argv) => argv.includes(bootstrap));
  if (found === undefined) throw new Error("there is no Envoy");
  return found.pid;
}

function cpuMs(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.split(" ") ?? [];
  return (Number(fields[11]) + Number(fields[12])) * CLOCK_TICK_MS;
}

function residentKb(pid: number): number {
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? 0);
}
