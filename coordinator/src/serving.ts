import type { Config } from "./config.ts";
import type { GrpcPort } from "./grpc-port.ts";
import type { ApiCallOptions } from "./http/api/call.ts";
import type { CallAudit } from "./rpc/call-audit.ts";
import type { ServeOptions } from "./rpc/serve.ts";
import { TokenTrust } from "./rpc/token-trust.ts";

export interface ServingOptions
  extends Pick<ServeOptions, "log" | "stopping" | "revision" | "mayDeny">,
    Pick<ApiCallOptions, "observe" | "monotonicMs"> {
  readonly audit: Pick<CallAudit, "begin">;
  readonly config: Pick<Config, "store">;
  /** Returns the milliseconds since this coordinator last received anything from the store. */
  readonly silentMs: () => number;
}

/**
 * Returns how calls are served over gRPC and over HTTP, with the same callers and the same audit
 * log.
 */
export function servingOf(
  port: Pick<GrpcPort, "identify" | "peerOf" | "streamOf" | "tokens" | "tokenWatch">,
  { config, silentMs, ...own }: ServingOptions,
): { readonly serving: ServeOptions; readonly calls: ApiCallOptions } {
  const trust = new TokenTrust({ config, silentMs });
  const { observe, monotonicMs, audit, mayDeny } = own;
  return {
    serving: {
      ...own,
      identify: trust.identifying(port.identify),
      peerOf: port.peerOf,
      tokens: port.tokenWatch,
      streamOf: port.streamOf,
    },
    calls: { identify: trust.finding(port.tokens), observe, monotonicMs, audit, mayDeny },
  };
}
