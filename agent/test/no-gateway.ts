import type { GatewayStatus, GatewayUpdate } from "@forage/proto/forage/agent/v1/agent";
import type { Gateway } from "../src/gateway/gateway.ts";

/** A gateway that accepts everything and serves nothing, for tests in which the gateway is irrelevant. */
export class NoGateway implements Gateway {
  readonly applied: GatewayUpdate[] = [];
  #status: GatewayStatus | undefined;
  readonly #listeners = new Set<(status: GatewayStatus) => void>();

  start(): void {}
  restart(): void {}
  apply(update: GatewayUpdate): void {
    this.applied.push(update);
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
