import { type ChildProcess, fork } from "node:child_process";
import { join } from "node:path";
import { parseArgs } from "node:util";
import type { FromClient, FromServer, ToClient, ToServer } from "./messages.ts";

const path = "web.shop.svc.cluster.local:80";
const settleMs = 50;
/** For instance `--cpu-prof`. */
const nodeOptions = (process.env.BENCH_NODE_OPTIONS ?? "").split(" ").filter((option) => option !== "");

interface Run {
  readonly streams: number;
  readonly connections: number;
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

/** One service on many streams: `destination [--streams N] [--connections N,N] [--endpoints N] [--changes N]`. */
export async function main(): Promise<void> {
  const text = (value: string) => ({ type: "string", default: value }) as const;
  const { values } = parseArgs({
    options: {
      streams: text("1000"),
      connections: text("1000,10"),
      endpoints: text("100"),
      changes: text("40"),
    },
  });
  const runs: Run[] = [];
  for (const connections of values.connections.split(",").map(Number)) {
    const sizes = { streams: Number(values.streams), connections, endpoints: Number(values.endpoints) };
    runs.push(await measure(sizes, Number(values.changes)));
  }
  const [first] = runs;
  for (const key of Object.keys(first ?? {}) as (keyof Run)[]) {
    console.log(key.padEnd(20), ...runs.map((run) => String(run[key]).padStart(10)));
  }
  console.log(JSON.stringify({ bench: "destination", ...values, runs }));
}

async function measure(
  { streams, connections, endpoints }: { streams: number; connections: number; endpoints: number },
  changes: number,
): Promise<Run> {
  const server = new Peer<ToServer, FromServer>("server.ts", [String(endpoints)]);
  const client = new Peer<ToClient, FromClient>("client.ts", []);
  try {
    const { port } = await server.next("up");
    const before = await usage(server);
    client.send({ kind: "open", port, streams, connections, path });
    const full = await client.next("arrived");
    const fullMs = full.atNs.map((at) => msBetween(full.startedNs, at));
    const opened = await usage(server);
    const receipts: number[] = [];
    const lasts: number[] = [];
    const beforeChurn = await usage(server);
    for (let change = 0; change < changes; change++) {
      await new Promise((resolve) => setTimeout(resolve, settleMs));
      // Every other change brings back the pod that the one before took away, so each is one message.
      server.send({ kind: "change", pod: Math.floor(change / 2) % endpoints, ready: change % 2 === 1 });
      const { atNs } = await server.next("changed");
      client.send({ kind: "await", messages: change + 2 });
      const arrived = await client.next("arrived");
      const times = arrived.atNs.map((at) => msBetween(atNs, at));
      receipts.push(...times);
      lasts.push(Math.max(...times));
    }
    const afterChurn = await usage(server);
    return {
      streams,
      connections,
      fullP50Ms: quantile(fullMs, 0.5),
      fullMaxMs: quantile(fullMs, 1),
      setupCpuMs: rounded((opened.cpuUs - before.cpuUs) / 1000),
      kbPerStream: rounded((opened.residentBytes - before.residentBytes) / streams / 1000),
      kbPerStreamAfter: rounded((afterChurn.residentBytes - before.residentBytes) / streams / 1000),
      receiptP50Ms: quantile(receipts, 0.5),
      receiptP99Ms: quantile(receipts, 0.99),
      lastStreamP50Ms: quantile(lasts, 0.5),
      cpuUsPerMessage: rounded((afterChurn.cpuUs - beforeChurn.cpuUs) / (changes * streams)),
    };
  } finally {
    server.close();
    client.close();
  }
}

async function usage(server: Peer<ToServer, FromServer>) {
  server.send({ kind: "usage" });
  return server.next("usage");
}

/** A process that is asked and answers, one thing at a time. */
class Peer<To extends object, From extends { readonly kind: string }> {
  readonly #process: ChildProcess;
  readonly #received: From[] = [];
  #ended = false;
  #wake = (): void => undefined;

  constructor(file: string, args: readonly string[]) {
    this.#process = fork(join(import.meta.dirname, file), args, { execArgv: [...nodeOptions] });
    this.#process.on("exit", () => {
      this.#ended = true;
      this.#wake();
    });
    this.#process.on("message", (message) => {
      this.#received.push(message as From);
      this.#wake();
    });
  }

  send(message: To): void {
    if (!this.#ended) this.#process.send(message);
  }

  /** Throws when something else comes: a stream that ends spoils the measurement. */
  async next<K extends From["kind"]>(kind: K): Promise<Extract<From, { kind: K }>> {
    while (this.#received.length === 0) {
      if (this.#ended) throw new Error(`the process that was to answer with ${kind} has ended`);
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    const message = this.#received.shift();
    if (message?.kind !== kind) throw new Error(`got ${JSON.stringify(message)} in place of ${kind}`);
    return message as Extract<From, { kind: K }>;
  }

  close(): void {
    if (!this.#ended) this.#process.disconnect();
  }
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
