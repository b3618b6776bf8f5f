import type { GatewayRule } from "@forage/proto/forage/agent/v1/agent";
import { weightsOf } from "./backends.ts";
import type { JsonObject } from "./json.ts";
import { filtersOf, headerChanges, type RequestOrigin, redirectOf, rewritesOf } from "./route-filters.ts";
import { matchOf } from "./route-match.ts";

/** Returns a rule as Envoy's route. */
export function routeOf(rule: GatewayRule, at: RequestOrigin): JsonObject {
  return {
    // The name appears in the access log and in the statistics of each route.
    name: rule.route,
    stat_prefix: rule.route,
    match: matchOf(rule.match),
    ...headerChanges(rule),
    ...answerOf(rule, at),
  };
}

/** A request that its backend hasn't received may be retried on another backend. */
const RETRY: JsonObject = {
  retry_on: "connect-failure,refused-stream,reset-before-request",
  num_retries: 3,
  retry_host_predicate: [
    {
      name: "other-hosts",
      typed_config: {
        "@type": "type.googleapis.com/envoy.extensions.retry.host.previous_hosts.v3.PreviousHostsPredicate",
      },
    },
  ],
  host_selection_retry_max_attempts: 3,
};

function answerOf(rule: GatewayRule, at: RequestOrigin): JsonObject {
  const [redirect] = filtersOf(rule, "requestRedirect");
  if (redirect !== undefined) return { redirect: redirectOf(redirect, at) };
  const weights = weightsOf(rule.backends);
  const [first] = weights;
  if (first === undefined) return { direct_response: { status: 503 } };
  return {
    route: {
      ...(weights.length === 1 ? { cluster: first.name } : { weighted_clusters: { clusters: weights } }),
      // Envoy's own default is 15 s.
      timeout: seconds(rule.timeoutMs),
      retry_policy: RETRY,
      ...rewritesOf(rule),
    },
  };
}

function seconds(ms: bigint): string {
  return `${ms / 1000n}.${String(ms % 1000n).padStart(3, "0")}s`;
}
