import { ConnectResponse, type ServiceUpdate } from "@forage/proto/forage/agent/v1/agent";
import { waitFor } from "../../hack/lib/wait-for.ts";
import type { AppliedRules } from "./kernel-agent.ts";

/** One change of some services, and the times of its arrivals. */
export class Round {
  /** The times at which agents without kernel rules received it. */
  readonly receivedMs: number[] = [];
  /** The times at which agents with kernel rules had applied it. */
  readonly inForceMs: number[] = [];
  /** The number of bytes that one agent was sent. */
  bytes = 0;
  readonly #startMs: number;
  /** The number of endpoints that these services should have. */
  readonly #expected: ReadonlyMap<string, number>;
  /** The changes that each agent hasn't received yet. */
  readonly #lacking: Map<string, Set<string>>;

  /** `startMs` is a time of this machine's monotonic clock. */
  constructor(
    startMs: number,
    expected: ReadonlyMap<string, number>,
    { agents, kernels }: { readonly agents: number; readonly kernels: number },
  ) {
    this.#startMs = startMs;
    this.#expected = expected;
    const names = [
      ...Array.from({ length: agents }, (_, index) => `n${index}`),
      ...Array.from({ length: kernels }, (_, index) => `k${index}`),
    ];
    this.#lacking = new Map(names.map((name) => [name, new Set(expected.keys())]));
  }

  received(agent: string, update: ServiceUpdate): void {
    if (agent === "n0")
      this.bytes += ConnectResponse.encode({ message: { $case: "services", value: update } }).finish().length;
    for (const { namespace, name, endpoints } of update.upserts)
      this.#note(agent, `${namespace}/${name}`, endpoints.length, this.receivedMs, nowMs());
  }

  applied({ name, atMs, endpoints }: AppliedRules): void {
    for (const [key, count] of endpoints) this.#note(name, key, count, this.inForceMs, atMs);
  }

  /** Resolves when all agents have the change. */
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
    if (lacking === undefined || this.#expected.get(key) !== endpoints || !lacking.delete(key)) return;
    if (lacking.size > 0) return;
    this.#lacking.delete(agent);
    times.push(atMs - this.#startMs);
  }
}

/** Returns the time of this machine's monotonic clock, which all processes share. */
export function nowMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}
