import { setTimeout as delay } from "node:timers/promises";
import { type BackOff, backOffMs } from "@forage/common/back-off";
import { bearerMetadata, channelCredentials } from "@forage/identity/credentials";
import { createKeyAndCsr } from "@forage/identity/csr";
import { parseJoinToken } from "@forage/identity/join-token";
import {
  AgentServiceClient,
  type ConnectRequest,
  type ConnectResponse,
  EnrollmentServiceClient,
  type JoinResponse,
  type PodAssignment,
  type ServiceUpdate,
} from "@forage/proto/forage/agent/v1/agent";
import {
  type CreateJoinTokenResponse,
  OperatorServiceClient,
} from "@forage/proto/forage/operator/v1/operator";
import { type ChannelCredentials, type ClientDuplexStream, Metadata } from "@grpc/grpc-js";
import type { CoordinatorProcess } from "./coordinator-process.ts";
import { Heartbeats } from "./heartbeats.ts";
import { type HollowHost, helloOf, PodAnswers, statusesOf } from "./pod-answers.ts";

/** The maximum uses of one reusable token. */
const JOINS_PER_TOKEN = 100;
const JOINS_AT_ONCE = 16;
export const HEARTBEAT_MS = 2_500;

export interface SocketAgentsOptions {
  /** Returns the host that the agent reports. */
  readonly host?: (node: string) => HollowHost;
  /** Called with all messages about services that agents receive. */
  readonly onServices?: (node: string, update: ServiceUpdate) => void;
}

interface HollowAgent {
  readonly name: string;
  readonly answers: PodAnswers;
  readonly credentials: ChannelCredentials;
  /** Sends over the current connection. */
  send: (request: ConnectRequest) => void;
  close: () => void;
}

/** The delays between attempts of the agent's own link. */
const RECONNECT: BackOff = { baseMs: 500, capMs: 10_000 };

/** Agents without hosts in this process. Each has joined, and has its own channel. */
export class SocketAgents {
  readonly #options: SocketAgentsOptions;
  readonly #agents: HollowAgent[] = [];
  /** The number of pods that were assigned to agents. */
  given = 0;

  constructor(options: SocketAgentsOptions = {}) {
    this.#options = options;
  }

  get connected(): number {
    return this.#agents.length;
  }

  /** Joins and connects `count` more agents. */
  async start(coordinator: CoordinatorProcess, count: number): Promise<void> {
    const end = this.connected + count;
    for (let from = this.connected; from < end; from += JOINS_PER_TOKEN) {
      const token = await joinToken(coordinator);
      const names = Array.from({ length: Math.min(JOINS_PER_TOKEN, end - from) }, (_, i) => `n${from + i}`);
      while (names.length > 0)
        await Promise.all(
          names.splice(0, JOINS_AT_ONCE).map((name) => this.#startOne(coordinator, token, name)),
        );
    }
  }

  /** Returns the agent's nth pod in the order of assignment; `undefined` if it has fewer. */
  podOf(agent: number, nth: number): PodAssignment | undefined {
    return [...(this.#agents[agent]?.answers.pods.values() ?? [])][nth];
  }

  setReady(agent: number, pod: PodAssignment, ready: boolean): void {
    const it = this.#agents[agent];
    it?.send(statusesOf([it.answers.statusOf(pod, ready)]));
  }

  /**
   * Connects all agents again after the coordinator was killed, each with the delays of a real agent. Calls `onBack`
   * for each that was welcomed.
   */
  async reconnect(address: string, onBack: () => void): Promise<void> {
    await Promise.all(
      this.#agents.map(async (agent) => {
        for (let failures = 1; ; failures++) {
          await delay(Math.random() * backOffMs(failures + 1, RECONNECT));
          agent.close();
          try {
            const client = agentClient(address, agent.credentials);
            await this.#open(agent, client, client.connect());
            return onBack();
          } catch {
            // The connection was refused or lost. The next attempt follows.
          }
        }
      }),
    );
  }

  close(): void {
    for (const { close } of this.#agents) close();
  }

  async #startOne(coordinator: CoordinatorProcess, token: string, name: string): Promise<void> {
    const { client, stream, credentials } = await joinAndConnect(coordinator, token, name);
    const answers = new PodAnswers(() => this.given++);
    const agent: HollowAgent = { name, answers, credentials, send: () => {}, close: () => {} };
    await this.#open(agent, client, stream);
    this.#agents.push(agent);
  }

  /** Resolves when the coordinator has welcomed the agent. */
  async #open(
    agent: HollowAgent,
    client: AgentServiceClient,
    stream: ClientDuplexStream<ConnectRequest, ConnectResponse>,
  ): Promise<void> {
    const { name, answers } = agent;
    const { host, onServices } = this.#options;
    const heartbeats = new Heartbeats(
      (message) => stream.write(message),
      () => stream.cancel(),
    );
    agent.close = () => {
      heartbeats.stop();
      stream.cancel();
      client.close();
    };
    agent.send = (request) => void stream.write(request);
    await new Promise<void>((resolve, reject) => {
      stream.on("error", (error) => {
        heartbeats.stop();
        reject(error);
      });
      stream.on("data", (response: ConnectResponse) => {
        heartbeats.received(response);
        if (response.message?.$case === "welcome") {
          heartbeats.every(response.message.value.heartbeatIntervalMs);
          resolve();
        }
        if (response.message?.$case === "heartbeatInterval")
          heartbeats.every(response.message.value.intervalMs);
        if (response.message?.$case === "services") onServices?.(name, response.message.value);
        const answer = answers.answer(response);
        if (answer !== undefined) stream.write(answer);
      });
      stream.write({ message: { $case: "hello", value: helloOf(name, host?.(name), answers.statuses()) } });
    });
  }
}

/** Joins and connects like an agent, with its own key. */
export async function joinAndConnect(
  { address, caPem }: Pick<CoordinatorProcess, "address" | "caPem">,
  token: string,
  name: string,
): Promise<{
  client: AgentServiceClient;
  stream: ClientDuplexStream<ConnectRequest, ConnectResponse>;
  credentials: ChannelCredentials;
}> {
  const { id, secret } = parseJoinToken(token);
  const { keyPem, csrPem } = await createKeyAndCsr();
  const enrolling = new EnrollmentServiceClient(address, channelCredentials({ caPem }));
  const request = { tokenId: id, tokenSecret: secret, csr: Buffer.from(csrPem), nodeName: name };
  const joined = await new Promise<JoinResponse>((resolve, reject) =>
    enrolling.join(request, new Metadata(), (error, answer) => (error ? reject(error) : resolve(answer))),
  );
  enrolling.close();
  const credentials = channelCredentials({ caPem, certPem: joined.certificatePem, keyPem });
  const client = agentClient(address, credentials);
  return { client, stream: client.connect(), credentials };
}

/** Returns a client on a connection of its own. Channels to one address with equal options would share their sockets. */
function agentClient(address: string, credentials: ChannelCredentials): AgentServiceClient {
  return new AgentServiceClient(address, credentials, {
    "grpc.use_local_subchannel_pool": 1,
  });
}

export async function joinToken(
  { address, caPem, token }: CoordinatorProcess,
  labels: Readonly<Record<string, string>> = {},
): Promise<string> {
  const operator = new OperatorServiceClient(address, channelCredentials({ caPem }));
  const request = { ttlSeconds: 600, nodeName: "", reusable: true, labels: { ...labels }, taints: [] };
  const answer = await new Promise<CreateJoinTokenResponse>((resolve, reject) =>
    operator.createJoinToken(request, bearerMetadata(token), (error, response) =>
      error ? reject(error) : resolve(response),
    ),
  );
  operator.close();
  return answer.token;
}
