import type { Http2ClientParams, RetryBudget, TlsIdentity } from "@forage/proto/destination";
import type { PortSet } from "../../endpoints/ports.ts";

export type Protocol = "detect" | "http2" | "opaque";
/** The requests that may be retried: none, those that change nothing, all. */
export type Retry = "none" | "safe" | "all";

/** The protocol hints for a service's endpoints, from its annotations. */
export interface ServiceHints {
  /** Ports whose traffic is forwarded as bytes without protocol detection. Undefined: the usual ones. */
  readonly opaquePorts: PortSet | undefined;
  /** Keyed by a port's number or name; "": all others. */
  readonly protocols: ReadonlyMap<string, Protocol>;
  /** The port on which endpoints' proxies accept opaque connections; 0: none. */
  readonly opaqueTransportPort: number;
  readonly tlsIdentity: TlsIdentity | undefined;
  readonly authorityOverride: string | undefined;
  readonly http2: Http2ClientParams | undefined;
  readonly retryBudget: RetryBudget;
  readonly retry: Retry;
  /** Whether clients are kept in their zone where that is possible. */
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
