import type { GatewayStatus, GatewayUpdate } from "@forage/proto/forage/agent/v1/agent";
import type { Gateway } from "../agent/src/gateway/gateway.ts";
import type { KnownGateway } from "../agent/src/gateway/known-gateway.ts";
import type { KnownServices } from "../agent/src/services/known-services.ts";
import type { AgentAccess, ServingHost } from "./serving-host.ts";

const LONGEST_APPLY_MS = 500;

export interface SimGatewayOptions extends AgentAccess {
  readonly host: ServingHost;
  readonly known: KnownGateway;
  readonly services: Pick<KnownServices, "services" | "subscribe" | "loaded">;
}

/** A gateway with a simulated proxy. The proxy serves the real agent's configuration shortly after it has changed. */
export class SimGateway implements Gateway {
  readonly #options: SimGatewayOptions;
  readonly #listeners = new Set<(status: GatewayStatus) => void>();
  #status: GatewayStatus | undefined;
  #isDue = false;

  constructor(options: SimGatewayOptions) {
    this.#options = options;
  }

  start(): void {
    const { host, known, services } = this.#options;
    known.subscribe(() => this.#applySoon());
    services.subscribe(() => this.#applySoon());
    host.onProxyEnd = () => this.#applySoon();
    this.#applySoon();
  }

  restart(): void {
    this.#options.known.restart();
  }

  apply(update: GatewayUpdate): void {
    this.#options.known.apply(update);
  }

  status(): GatewayStatus | undefined {
    return this.#status;
  }

  subscribe(listener: (status: GatewayStatus) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  async traffic(): Promise<undefined> {}

  async metrics(): Promise<undefined> {}

  async close(): Promise<void> {}

  #applySoon(): void {
    if (this.#isDue) return;
    this.#isDue = true;
    const { clock, random } = this.#options;
    clock.schedule(Math.ceil(random() * LONGEST_APPLY_MS), () => {
      this.#isDue = false;
      this.#apply();
    });
  }

  #apply(): void {
    const { host, known, services } = this.#options;
    // A running proxy keeps its configuration until the coordinator has sent what was lost.
    if (known.loaded !== "sound" || services.loaded !== "sound") return;
    const isGateway = known.gateway !== "";
    host.serve(
      isGateway
        ? {
            hosts: new Map(known.hosts),
            certificates: new Map(known.certificates),
            services: new Map(services.services),
          }
        : undefined,
    );
    if (!isGateway && this.#status === undefined) return;
    const message = isGateway ? "" : "this node is not a gateway";
    // The version that the proxy applied last, while the host was a gateway.
    const version = isGateway ? known.version : (this.#status?.version ?? 0n);
    const status = { ready: isGateway, message, proxyVersion: "sim", version, problems: [] };
    this.#status = status;
    for (const listener of this.#listeners) listener(status);
  }
}
