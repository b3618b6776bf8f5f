import { messageOf } from "@forage/common/message-of";
import type { Clock } from "../clock.ts";
import { DnsServer, type DnsServerOptions } from "./dns-server.ts";

export interface DnsListenerOptions extends DnsServerOptions {
  readonly clock: Clock;
  readonly onProblem: (event: string, error: unknown) => void;
}

/**
 * The time after which a failed listen is repeated. After a boot, the bridge's address is missing until the network is set
 * up.
 */
const AGAIN_MS = 250;
const AGAIN_CAP_MS = 10_000;

/** A DNS server at an address that may not exist yet. It retries until it can listen there. */
export class DnsListener {
  readonly #options: DnsListenerOptions;
  #server: DnsServer | undefined;
  #problem: string | undefined;
  #cancel: (() => void) | undefined;
  #listening: Promise<void> = Promise.resolve();
  #closed = false;

  private constructor(options: DnsListenerOptions) {
    this.#options = options;
  }

  /** Opens the server. Resolves after the first attempt. */
  static async open(options: DnsListenerOptions): Promise<DnsListener> {
    const listener = new DnsListener(options);
    listener.#listening = listener.#listen(AGAIN_MS);
    await listener.#listening;
    return listener;
  }

  /** The reason why no query is answered, once that has lasted for a while. Undefined if the server works. */
  get problem(): string | undefined {
    return this.#problem;
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#cancel?.();
    await this.#listening;
    await this.#server?.close();
  }

  async #listen(againMs: number): Promise<void> {
    const { clock, onProblem } = this.#options;
    try {
      this.#server = await DnsServer.open(this.#options);
      this.#problem = undefined;
    } catch (error) {
      if (againMs >= AGAIN_CAP_MS) {
        if (this.#problem === undefined) onProblem("dns-not-served", error);
        this.#problem = `DNS for pods: ${messageOf(error)}`;
      }
      if (this.#closed) return;
      this.#cancel = clock.schedule(againMs, () => {
        this.#listening = this.#listen(Math.min(AGAIN_CAP_MS, againMs * 2));
      });
    }
  }
}
