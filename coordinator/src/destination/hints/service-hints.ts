import type { Http2ClientParams, RetryBudget, TlsIdentity } from "@forage/proto/destination";
import type { PortSet } from "../../endpoints/ports.ts";

export type Protocol = "detect" | "http2" | "opaque";
/** The requests that may be retried: none, requests without side effects, or all. */
export type Retry = "none" | "safe" | "all";

/** The hints for a service's endpoints, from its annotations. */
export interface ServiceHints {
  /**
   * Ports whose traffic is forwarded as bytes without protocol detection. Undefined means the
   * default ports.
   */
  readonly opaquePorts: PortSet | undefined;
  /** Protocols by port number or name; the key "" means all other ports. */
  readonly protocols: ReadonlyMap<string, Protocol>;
  /** The port on which the endpoints' proxies accept opaque connections; 0 if there is none. */
  readonly opaqueTransportPort: number;
  readonly tlsIdentity: TlsIdentity | undefined;
  readonly authorityOverride: string | undefined;
  readonly http2: Http2ClientParams | undefined;
  readonly retryBudget: RetryBudget;
  readonly retry: Retry;
  /** Whether clients use endpoints in their own zone if possible. */
  readonly zoneAware: boolean;
}

export interface AnnotationProblem {
  readonly key: string;
  readonly problem: string;
}

/** The default of Linkerd's controller. */
export const DEFAULT_RETRY_BUDGET: RetryBudget = {
  retryRatio: 0.2,
  minRetriesPerSecond: 10,
  ttl: { seconds: 10n, nanos: 0 },
};
