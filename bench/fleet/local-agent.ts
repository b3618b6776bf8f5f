import { nodeId } from "@forage/identity";
import type { ConnectRequest } from "@forage/proto/forage/agent/v1/agent";
import type { Core } from "../../coordinator/src/core.ts";
import { Channel } from "../../coordinator/src/link/channel.ts";
import { connect } from "../../coordinator/src/link/connect.ts";
import { heartbeat } from "./heartbeats.ts";
import { helloOf, PodAnswers, statusesOf, statusOf } from "./pod-answers.ts";

const CAPACITY = 1_000;
export const HEARTBEAT_MS = 600_000;

/** An agent without a host, connected to the coordinator's own stream handler. */
export class LocalAgent {
  readonly #answers = new PodAnswers(() => {});
  readonly #requests = new Channel<ConnectRequest>(CAPACITY);
  readonly #stopped = new AbortController();
  readonly #heartbeats: NodeJS.Timeout;
  #flips = 0;

  constructor(name: string, core: Core) {
    void this.#run(name, core);
    this.#heartbeats = setInterval(() => {
      void this.#requests.push(heartbeat());
    }, HEARTBEAT_MS);
  }

  /** Disconnects. Each agent has a signal of its own, because adding a listener takes longer the more a signal has. */
  stop(): void {
    clearInterval(this.#heartbeats);
    this.#stopped.abort();
    this.#requests.close();
  }

  get pods(): number {
    return this.#answers.pods.size;
  }

  /** Changes the readiness of one of its pods. Returns the pod, if there is one. */
  flip(): { readonly uid: string; readonly ready: boolean } | undefined {
    const pod = this.#answers.pods.values().next().value;
    if (pod === undefined) return undefined;
    const ready = this.#flips++ % 2 === 1;
    void this.#requests.push(statusesOf([statusOf(pod, ready)]));
    return { uid: pod.uid, ready };
  }

  async #run(name: string, core: Core): Promise<void> {
    void this.#requests.push({ message: { $case: "hello", value: helloOf(name) } });
    const caller = { type: "node", nodeId: nodeId(name) } as const;
    const context = { method: "", caller, peer: "", signal: this.#stopped.signal };
    for await (const response of connect(this.#requests, context, core.services.connect)) {
      // Encoded messages concern services, and the fleet has none.
      if (Buffer.isBuffer(response)) continue;
      const answer = this.#answers.answer(response);
      if (answer !== undefined) void this.#requests.push(answer);
    }
  }
}
