import type { GatewayStatus, GatewayUpdate } from "@forage/proto/forage/agent/v1/agent";

/** What serves routes on this host, if it is a gateway, fed by the link, from disk while there is none. */
export interface Gateway {
  /** Begins to serve what is known from before. */
  start(): void;
  /** A new connection tells everything anew. */
  restart(): void;
  take(update: GatewayUpdate): void;
  /** Undefined: the host is no gateway, and nobody asked it to be one since it started. */
  status(): GatewayStatus | undefined;
  /** Calls with each new status. Returns how to stop. */
  subscribe(listener: (status: GatewayStatus) => void): () => void;
  /** The proxy's figures in Prometheus' text format; undefined: it doesn't run. */
  metrics(): Promise<string | undefined>;
  /** Lets go of the proxy, which goes on. */
  close(): Promise<void>;
}
