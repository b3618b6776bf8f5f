import { Agent, request } from "node:http";

export interface LoadResult {
  readonly requestsPerSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly requests: number;
}

/** Sends requests for `durationMs` on that many persistent connections. Each connection has one request in flight. */
export async function measureLoad(
  { port, host }: { readonly port: number; readonly host: string },
  connections: number,
  durationMs: number,
): Promise<LoadResult> {
  const agent = new Agent({ keepAlive: true, maxSockets: connections });
  const tookMs: number[] = [];
  const startMs = performance.now();
  const client = async (): Promise<void> => {
    while (performance.now() - startMs < durationMs) {
      const beginMs = performance.now();
      await askOnce(port, host, agent);
      tookMs.push(performance.now() - beginMs);
    }
  };
  await Promise.all(Array.from({ length: connections }, client));
  const elapsedMs = performance.now() - startMs;
  agent.destroy();
  return {
    requestsPerSecond: Math.round((tookMs.length / elapsedMs) * 1000),
    p50Ms: quantile(tookMs, 0.5),
    p99Ms: quantile(tookMs, 0.99),
    requests: tookMs.length,
  };
}

export function quantile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  const found = sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
  return Math.round(found * 10) / 10;
}

function askOnce(port: number, host: string, agent: Agent): Promise<void> {
  return new Promise((resolve, reject) => {
    const asking = request({ host: "127.0.0.1", port, agent, headers: { host } }, (answer) => {
      answer.resume();
      answer.on("error", reject);
      answer.on("end", () =>
        answer.statusCode === 200 ? resolve() : reject(new Error(`answered with ${answer.statusCode}`)),
      );
    });
    asking.on("error", reject);
    asking.end();
  });
}
