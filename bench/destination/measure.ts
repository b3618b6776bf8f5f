import type { FromClient, FromServer, ToClient, ToServer } from "./messages.ts";
import { Peer } from "./peer.ts";

const PATH = "web.shop.svc.cluster.local:80";
const SETTLE_MS = 50;

export interface Program {
  readonly program: string;
  readonly args: readonly string[];
}

export interface Sizes {
  readonly streams: number;
  readonly connections: number;
  readonly endpoints: number;
  /**
   * The number of unmeasured changes at the start, after which the server's code is compiled and its heap has its final
   * size.
   */
  readonly warmUp: number;
  readonly changes: number;
}

/** The figures of one run: durations, and the server's cost. */
export interface Figures {
  readonly fullP50Ms: number;
  readonly fullMaxMs: number;
  readonly setupCpuMs: number;
  readonly kbPerStream: number;
  readonly kbPerStreamAfter: number;
  readonly receiptP50Ms: number;
  readonly receiptP99Ms: number;
  readonly lastStreamP50Ms: number;
  readonly cpuUsPerMessage: number;
}

/** Measures one server with all its streams, from the start of both to their end. */
export async function measure(ofServer: Program, ofClient: Program, sizes: Sizes): Promise<Figures> {
  const { streams, connections, endpoints, warmUp, changes } = sizes;
  const server = new Peer<ToServer, FromServer>(ofServer.program, [...ofServer.args, String(endpoints)]);
  const client = new Peer<ToClient, FromClient>(ofClient.program, ofClient.args);
  try {
    const { port, pid } = await server.next("up");
    const before = server.usage(pid);
    client.send({ type: "open", port, streams, connections, path: PATH });
    const full = await client.next("arrived");
    const fullMs = full.atNs.map((at) => msBetween(full.startedNs, at));
    const opened = server.usage(pid);
    const receipts: number[] = [];
    const lasts: number[] = [];
    let warm = opened;
    for (let change = 0; change < warmUp + changes; change++) {
      if (change === warmUp) warm = server.usage(pid);
      await new Promise((resolve) => setTimeout(resolve, SETTLE_MS));
      // Every other change restores the pod that the change before removed, so each causes one message.
      server.send({ type: "change", pod: Math.floor(change / 2) % endpoints, ready: change % 2 === 1 });
      const { atNs } = await server.next("changed");
      client.send({ type: "await", messages: change + 2 });
      const arrived = await client.next("arrived");
      if (change < warmUp) continue;
      const times = arrived.atNs.map((at) => msBetween(atNs, at));
      receipts.push(...times);
      lasts.push(Math.max(...times));
    }
    const after = server.usage(pid);
    return {
      fullP50Ms: quantile(fullMs, 0.5),
      fullMaxMs: quantile(fullMs, 1),
      setupCpuMs: rounded((opened.cpuUs - before.cpuUs) / 1000),
      kbPerStream: rounded((opened.residentBytes - before.residentBytes) / streams / 1000),
      kbPerStreamAfter: rounded((after.residentBytes - before.residentBytes) / streams / 1000),
      receiptP50Ms: quantile(receipts, 0.5),
      receiptP99Ms: quantile(receipts, 0.99),
      lastStreamP50Ms: quantile(lasts, 0.5),
      cpuUsPerMessage: rounded((after.cpuUs - warm.cpuUs) / (changes * streams)),
    };
  } finally {
    await Promise.all([server.close(), client.close()]);
  }
}

/** Returns the median of each figure. */
export function medians(runs: readonly Figures[]): Figures | undefined {
  const [first] = runs;
  if (first === undefined) return undefined;
  const names = Object.keys(first) as (keyof Figures)[];
  return Object.fromEntries(
    names.map((name) => [
      name,
      quantile(
        runs.map((run) => run[name]),
        0.5,
      ),
    ]),
  ) as unknown as Figures;
}

function msBetween(fromNs: string, toNs: string): number {
  return Number(BigInt(toNs) - BigInt(fromNs)) / 1e6;
}

function quantile(values: readonly number[], q: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return rounded(sorted[Math.min(sorted.length - 1, Math.floor(q * sorted.length))] ?? Number.NaN);
}

function rounded(value: number): number {
  return Math.round(value * 10) / 10;
}
