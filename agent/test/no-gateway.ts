import type { GatewayStatus, GatewayUpdate } from "@forage/proto/forage/agent/v1/agent";
import type { Gateway } from "../src/gateway/gateway.ts";

/** Accepts everything and serves nothing, for tests in which the gateway doesn't matter. */
export class NoGateway implements Gateway {
  readonly taken: GatewayUpdate[] = [];
  #status: GatewayStatus | undefined;
  readonly #listeners = new Set<(status: GatewayStatus) => void>();

  start(): void {}
  restart(): void {}
  take(update: GatewayUpdate): void {
    this.taken.push(update);
  }
  status(): GatewayStatus | undefined {
    return this.#status;
  }
  subscribe(listener: (status: GatewayStatus) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }
  async metrics(): Promise<undefined> {}
  async traffic(): Promise<undefined> {}
  async close(): Promise<void> {}

  /** Simulates a change of the proxy's state. */
  become(status: GatewayStatus): void {
    this.#status = status;
    for (const listener of this.#listeners) listener(status);
  }
}
