import { Agent, type RequestOptions } from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import { ask } from "./gateway-under-test.ts";

/** The pause of each client after a request. Without one, the clients would take the processor from the gateway. */
const PAUSE_MS = 5;

/** Clients that send one request after another, some over persistent connections and some over a new one each time. */
export class Load {
  answered = 0;
  readonly failures: string[] = [];
  readonly #agent = new Agent({ keepAlive: true });
  readonly #clients: Promise<void>[];
  #stopped = false;

  constructor(options: RequestOptions & { readonly keeping: number; readonly reconnecting: number }) {
    const { keeping, reconnecting, ...asked } = options;
    this.#clients = [
      ...Array.from({ length: keeping }, () => this.#run({ ...asked, agent: this.#agent })),
      ...Array.from({ length: reconnecting }, () => this.#run({ ...asked, agent: false })),
    ];
  }

  /** Stops the clients. Rejects if any request failed. */
  async stop(): Promise<void> {
    this.#stopped = true;
    await Promise.all(this.#clients);
    this.#agent.destroy();
    const { length } = this.failures;
    if (length > 0)
      throw new Error(
        `${length} of ${this.answered + length} requests failed: ${this.failures.slice(0, 5).join("; ")}`,
      );
  }

  async #run(options: RequestOptions): Promise<void> {
    while (!this.#stopped) {
      try {
        const { status, body } = await ask(options);
        if (status === 200) this.answered++;
        else this.failures.push(`${status} ${body}`);
      } catch (error) {
        this.failures.push(String(error));
      }
      await delay(PAUSE_MS);
    }
  }
}
