import { ConnectResponse, type ServiceUpdate } from "@forage/proto/forage/agent/v1/agent";
import { waitFor } from "../../hack/lib/wait-for.ts";
import type { InForce } from "./kernel-agent.ts";

/** One change of some services, and when it arrived where. */
export class Round {
  /** The times of the agents without rules in a kernel. */
  readonly receivedMs: number[] = [];
  /** The times of the agents with rules in a kernel. */
  readonly inForceMs: number[] = [];
  /** The bytes that one agent was sent. */
  bytes = 0;
  readonly #startMs: number;
  /** The number of endpoints that these services should have. */
  readonly #wanted: ReadonlyMap<string, number>;
  /** The changes that each agent hasn't received yet. */
  readonly #lacking: Map<string, Set<string>>;

  /** Since `startMs` of this machine's monotonic clock. */
  constructor(
    startMs: number,
    wanted: ReadonlyMap<string, number>,
    { agents, kernels }: { readonly agents: number; readonly kernels: number },
  ) {
    this.#startMs = startMs;
    this.#wanted = wanted;
    const names = [
      ...Array.from({ length: agents }, (_, index) => `n${index}`),
      ...Array.from({ length: kernels }, (_, index) => `k${index}`),
    ];
    this.#lacking = new Map(names.map((name) => [name, new Set(wanted.keys())]));
  }

  received(agent: string, update: ServiceUpdate): void {
    if (agent === "n0")
      this.bytes += ConnectResponse.encode({ message: { $case: "services", value: update } }).finish().length;
    for (const { namespace, name, endpoints } of update.upserts)
      this.#note(agent, `${namespace}/${name}`, endpoints.length, this.receivedMs, nowMs());
  }

  inForce({ name, atMs, endpoints }: InForce): void {
    for (const [key, count] of endpoints) this.#note(name, key, count, this.inForceMs, atMs);
  }

  /** Resolves when all agents have it. */
  async end(limitMs: number): Promise<void> {
    await waitFor(() => this.#lacking.size === 0, {
      what: "all agents have the change",
      limitMs,
      everyMs: 5,
      explain: () =>
        [...this.#lacking]
          .slice(0, 3)
          .map(([name, keys]) => `${name}: ${[...keys]}`)
          .join("; "),
    });
  }

  #note(agent: string, key: string, endpoints: number, times: number[], atMs: number): void {
    const lacking = this.#lacking.get(agent);
    if (lacking === undefined || this.#wanted.get(key) !== endpoints || !lacking.delete(key)) return;
    if (lacking.size > 0) return;
    this.#lacking.delete(agent);
    times.push(atMs - this.#startMs);
  }
}

/** The time of this machine's monotonic clock, which all processes share. */
export function nowMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}
