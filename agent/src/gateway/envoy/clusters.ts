import { isIP } from "node:net";
import type { ServiceEndpoint, ServiceState } from "@forage/proto/forage/agent/v1/agent";
import { clusterName, type ServicePortRef } from "./backends.ts";
import { type EnvoyPaths, fileSource } from "./envoy-paths.ts";
import { type JsonObject, typed } from "./json.ts";

/** Returns a service's port as Envoy's cluster. Endpoints are separate, so that they can change without it. */
export function clusterOf(
  ref: ServicePortRef,
  service: ServiceState | undefined,
  places: EnvoyPaths,
): JsonObject {
  const name = clusterName(ref);
  return typed("config.cluster.v3.Cluster", {
    name,
    type: "EDS",
    eds_cluster_config: { eds_config: fileSource(places.endpoints(name)) },
    connect_timeout: "2s",
    lb_policy: "LEAST_REQUEST",
    per_connection_buffer_limit_bytes: 32_768,
    typed_extension_protocol_options: {
      "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": protocolOptions(ref, service),
    },
    circuit_breakers: { thresholds: [LIMITS] },
    outlier_detection: ONLY_UNREACHABLE,
    upstream_connection_options: {
      tcp_keepalive: { keepalive_probes: 3, keepalive_time: 30, keepalive_interval: 5 },
    },
  });
}

/** Envoy's default limits of 1,024 are too low for the WebSockets of a busy host. */
const LIMITS: JsonObject = {
  max_connections: 20_000,
  max_pending_requests: 20_000,
  max_requests: 20_000,
  retry_budget: { budget_percent: { value: 20 }, min_retry_concurrency: 10 },
};

/**
 * Readiness selects the backends. Between readiness updates, only backends that can't be connected to are skipped; a
 * backend's own errors don't count.
 */
const ONLY_UNREACHABLE: JsonObject = {
  split_external_local_origin_errors: true,
  consecutive_local_origin_failure: 3,
  enforcing_consecutive_local_origin_failure: 100,
  enforcing_local_origin_success_rate: 0,
  enforcing_consecutive_5xx: 0,
  enforcing_consecutive_gateway_failure: 0,
  enforcing_success_rate: 0,
  enforcing_failure_percentage: 0,
  interval: "1s",
  base_ejection_time: "5s",
  max_ejection_time: "30s",
  max_ejection_percent: 50,
};

/** The names of ports whose pods speak HTTP/2: `grpc`, `h2c` or `http2`, optionally with a suffix after a dash. */
const HTTP2_NAME = /^(grpc|h2c|http2)(-|$)/;
/**
 * The idle time-out, below the 5 s after which Node and other servers close idle connections, so that no request meets a
 * closing connection.
 */
const IDLE_TIMEOUT = "4s";

export function speaksHttp2({ port }: ServicePortRef, service: ServiceState | undefined): boolean {
  return HTTP2_NAME.test(service?.ports.find((it) => it.port === port)?.name ?? "");
}

function protocolOptions(ref: ServicePortRef, service: ServiceState | undefined): JsonObject {
  const protocol = speaksHttp2(ref, service) ? { http2_protocol_options: {} } : { http_protocol_options: {} };
  return typed("extensions.upstreams.http.v3.HttpProtocolOptions", {
    common_http_protocol_options: { idle_timeout: IDLE_TIMEOUT },
    explicit_http_config: protocol,
  });
}

/**
 * Returns the endpoints of a service's port for this node: this node's pods by their addresses, other pods by their
 * hosts' ports.
 */
export function endpointsOf(
  ref: ServicePortRef,
  service: ServiceState | undefined,
  node: string,
): JsonObject {
  const index =
    service?.ports.findIndex(({ port, protocol }) => port === ref.port && protocol === "TCP") ?? -1;
  const targetPort = service?.ports[index]?.targetPort ?? 0;
  const found = (index < 0 ? [] : (service?.endpoints ?? [])).flatMap(
    (endpoint) => addressOf(endpoint, index, targetPort, node) ?? [],
  );
  const addresses = new Map(found.map((at) => [`${at.address} ${at.port_value}`, at]));
  const sorted = [...addresses].sort(([a], [b]) => (a < b ? -1 : 1));
  return typed("config.endpoint.v3.ClusterLoadAssignment", {
    cluster_name: clusterName(ref),
    endpoints: [
      { lb_endpoints: sorted.map(([, at]) => ({ endpoint: { address: { socket_address: at } } })) },
    ],
  });
}

function addressOf(
  endpoint: ServiceEndpoint,
  index: number,
  targetPort: number,
  node: string,
): { address: string; port_value: number } | undefined {
  const hostPort = endpoint.hostPorts[index] ?? 0;
  const here = endpoint.node === node;
  if (hostPort === 0 || (!here && endpoint.local)) return undefined;
  const byPod = here && !endpoint.hostNetwork;
  const { podIp, podIpv6, hostIp, hostIpv6 } = endpoint;
  // Envoy accepts only addresses here, not names.
  const address = (byPod ? [podIp, podIpv6] : [hostIp, hostIpv6]).find((it) => isIP(it) !== 0) ?? "";
  return isIP(address) === 0 ? undefined : { address, port_value: byPod ? targetPort : hostPort };
}
