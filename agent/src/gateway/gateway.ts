import type { GatewayStatus, GatewayTraffic, GatewayUpdate } from "@forage/proto/forage/agent/v1/agent";

/**
 * Serves routes on this host if the host is a gateway. The configuration comes from the coordinator, and from disk
 * while the connection is down.
 */
export interface Gateway {
  /** Starts serving the configuration that is stored on this host. */
  start(): void;
  /** Called for a new connection, on which the coordinator sends the whole configuration again. */
  restart(): void;
  apply(update: GatewayUpdate): void;
  /**
   * Returns the gateway's status. Undefined if the host is not a gateway and has not been one since the agent started.
   */
  status(): GatewayStatus | undefined;
  /** Calls the listener with each new status. Returns a function that unsubscribes. */
  subscribe(listener: (status: GatewayStatus) => void): () => void;
  /** Returns the proxy's metrics in Prometheus' text format. Undefined if the proxy doesn't run. */
  metrics(): Promise<string | undefined>;
  /**
   * Returns the number of requests answered since the proxy started, a few seconds old. Undefined if the proxy doesn't
   * run or can't be read.
   */
  traffic(): Promise<GatewayTraffic | undefined>;
  /** Stops managing the proxy, which keeps running. */
  close(): Promise<void>;
}
