import { fork } from "node:child_process";
import { join } from "node:path";
import { channelCredentials } from "@forage/identity/credentials";
import { createKeyAndCsr } from "@forage/identity/csr";
import { parseJoinToken } from "@forage/identity/join-token";
import { EnrollmentServiceClient, type JoinResponse } from "@forage/proto/forage/agent/v1/agent";
import { Metadata } from "@grpc/grpc-js";
import { waitFor } from "../../hack/lib/wait-for.ts";
import { cpuSeconds } from "../apply/process-cost.ts";
import type { AgentOrder, AgentsOrder, AgentsState } from "./agents-program.ts";
import type { CoordinatorProcess } from "./coordinator-process.ts";
import { joinToken } from "./socket-agents.ts";

/** Fewer than the calls without credentials after which a connection is closed. */
const JOINS_PER_TOKEN = 50;
/** The number of calls without credentials that one connection may have open. */
const JOINS_AT_ONCE = 4;
const AGENTS_PER_PROGRAM = 1_250;
/** The time between the first connections of two agents. */
const START_MS = 15;
const LIMIT_MS = 600_000;

interface Program {
  readonly pid: number;
  readonly state: AgentsState;
  stop(): void;
}

/** Agents without hosts in separate programs, each on a TLS connection with its own address. */
export class AgentPrograms {
  readonly #programs: Program[] = [];
  readonly #agents: AgentOrder[];

  private constructor(agents: AgentOrder[]) {
    this.#agents = agents;
  }

  /** Joins `count` agents, and starts none. */
  static async join(coordinator: CoordinatorProcess, count: number): Promise<AgentPrograms> {
    return new AgentPrograms(await joinAll(coordinator, count));
  }

  get programs(): number {
    return this.#programs.length;
  }

  get cpuSeconds(): number {
    return this.#programs.reduce((sum, { pid }) => sum + cpuSeconds(pid), 0);
  }

  /** Connects all agents one after another. Each one reconnects whenever it loses its connection. */
  start({ address, caPem }: CoordinatorProcess): void {
    const [host = "", port] = address.split(":");
    for (let from = 0; from < this.#agents.length; from += AGENTS_PER_PROGRAM) {
      const agents = this.#agents.slice(from, from + AGENTS_PER_PROGRAM);
      this.#programs.push(startProgram({ host, port: Number(port), caPem, agents }));
    }
  }

  sum(name: keyof AgentsState): number {
    return this.#programs.reduce((sum, { state }) => sum + state[name], 0);
  }

  /** Resolves when this share of the agents is connected, and as many were welcomed in each of the rounds. */
  async connected(rounds: number, share = 1): Promise<void> {
    const count = this.#agents.length;
    const isDone = (): boolean =>
      this.sum("connected") >= share * count && this.sum("welcomes") >= (rounds - 1 + share) * count;
    await waitFor(async () => isDone(), {
      what: "the agents are connected",
      limitMs: LIMIT_MS,
      everyMs: 100,
      explain: () =>
        `${this.sum("connected")} of ${count} are connected, ${this.sum("failures")} attempts failed`,
    });
  }

  stop(): void {
    for (const { stop } of this.#programs) stop();
  }
}

function startProgram(order: AgentsOrder): Program {
  const child = fork(join(import.meta.dirname, "agents-program.ts"));
  let state: AgentsState = { connected: 0, welcomes: 0, failures: 0 };
  child.on("message", (newest: AgentsState) => {
    state = newest;
  });
  child.send(order);
  return {
    get state() {
      return state;
    },
    pid: child.pid ?? 0,
    stop: () => child.kill("SIGKILL"),
  };
}

/** Joins the agents. Agents of different tokens share their keys, which makes no difference to the coordinator. */
async function joinAll(coordinator: CoordinatorProcess, count: number): Promise<AgentOrder[]> {
  const keys = await Promise.all(Array.from({ length: JOINS_PER_TOKEN }, createKeyAndCsr));
  const agents: AgentOrder[] = [];
  for (let from = 0; from < count; from += JOINS_PER_TOKEN) {
    const token = await joinToken(coordinator);
    const channel = channelCredentials({ caPem: coordinator.caPem });
    const client = new EnrollmentServiceClient(coordinator.address, channel);
    for (let first = from; first < Math.min(count, from + JOINS_PER_TOKEN); first += JOINS_AT_ONCE) {
      const some = keys.slice(first - from, Math.min(count, first + JOINS_AT_ONCE) - from);
      const joining = some.map((key, index) => joinOne(client, token, first + index, key));
      agents.push(...(await Promise.all(joining)));
    }
    client.close();
  }
  return agents;
}

async function joinOne(
  client: EnrollmentServiceClient,
  token: string,
  index: number,
  { keyPem, csrPem }: Awaited<ReturnType<typeof createKeyAndCsr>>,
): Promise<AgentOrder> {
  const { id, secret } = parseJoinToken(token);
  const name = `n${index}`;
  const request = { tokenId: id, tokenSecret: secret, csr: Buffer.from(csrPem), nodeName: name };
  const { certificatePem } = await new Promise<JoinResponse>((resolve, reject) =>
    client.join(request, new Metadata(), (error, answer) => (error ? reject(error) : resolve(answer))),
  );
  const localAddress = `127.${1 + (index >> 16)}.${(index >> 8) & 255}.${index & 255}`;
  return { name, localAddress, keyPem, certPem: certificatePem, startMs: index * START_MS };
}
