import type { GatewayStatus, GatewayTraffic, GatewayUpdate } from "@forage/proto/forage/agent/v1/agent";

/** Serves routes on this host if it is a gateway. Its configuration comes from the link, and from disk while the link is down. */
export interface Gateway {
  /** Starts serving the configuration that is stored on this host. */
  start(): void;
  /** Called for a new connection, which sends the whole configuration again. */
  restart(): void;
  take(update: GatewayUpdate): void;
  /** Undefined if the host is no gateway and hasn't been one since the agent started. */
  status(): GatewayStatus | undefined;
  /** Calls with each new status. Returns how to stop. */
  subscribe(listener: (status: GatewayStatus) => void): () => void;
  /** The proxy's figures in Prometheus' text format; undefined: it doesn't run. */
  metrics(): Promise<string | undefined>;
  /** Returns the requests answered since the proxy started, some seconds old. Undefined: it doesn't run, or can't be read. */
  traffic(): Promise<GatewayTraffic | undefined>;
  /** Lets go of the proxy, which goes on. */
  close(): Promise<void>;
}
