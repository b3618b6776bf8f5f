import { accessLog } from "./access-log.ts";
import { type EnvoyPaths, fileSource } from "./envoy-paths.ts";
import { type JsonObject, typed } from "./json.ts";

export interface HttpManagerOptions {
  readonly places: EnvoyPaths;
  readonly accessLog: string;
  /** The number of trusted proxies in front of the gateway. The client's address is taken from their headers. */
  readonly trustedHops: number;
}

/** The path, for any host name, at which load balancers in front of the gateway check whether it accepts requests. */
export const HEALTH_PATH = "/.well-known/forage/ready";

/**
 * Configures the handling of requests from untrusted clients. It follows Envoy's advice for edge proxies, except where a comment
 * says otherwise.
 */
export function httpManager(entrance: "http" | "https", options: HttpManagerOptions): JsonObject {
  return {
    name: "http",
    typed_config: typed("extensions.filters.network.http_connection_manager.v3.HttpConnectionManager", {
      stat_prefix: entrance,
      codec_type: "AUTO",
      rds: { route_config_name: entrance, config_source: fileSource(options.places.routes(entrance)) },
      http_filters: [healthFilter(), router()],
      access_log: accessLog(options.accessLog, "request"),
      upgrade_configs: [{ upgrade_type: "websocket" }],
      ...whoAsks(options.trustedHops),
      ...limits(),
      // "/a/../b" becomes "/b" before rules are matched. Repeated and encoded slashes stay, because backends may need them.
      normalize_path: true,
      strip_trailing_host_dot: true,
      server_header_transformation: "PASS_THROUGH",
    }),
  };
}

function whoAsks(trustedHops: number): JsonObject {
  return {
    use_remote_address: true,
    xff_num_trusted_hops: trustedHops,
    // Envoy headers from clients are not trusted. An empty list would trust all private addresses.
    internal_address_config: { cidr_ranges: [{ address_prefix: "255.255.255.255", prefix_len: 32 }] },
  };
}

function limits(): JsonObject {
  return {
    common_http_protocol_options: { idle_timeout: "300s" },
    // The limit for streams without traffic. WebSockets and gRPC streams may be idle for long.
    stream_idle_timeout: "3600s",
    request_headers_timeout: "10s",
    max_request_headers_kb: 64,
    http2_protocol_options: {
      max_concurrent_streams: 100,
      initial_stream_window_size: 65_536,
      initial_connection_window_size: 1_048_576,
      // Required for WebSockets over HTTP/2.
      allow_connect: true,
      connection_keepalive: { interval: "60s", timeout: "20s" },
    },
  };
}

function healthFilter(): JsonObject {
  return {
    name: "health",
    typed_config: typed("extensions.filters.http.health_check.v3.HealthCheck", {
      pass_through_mode: false,
      headers: [{ name: ":path", string_match: { exact: HEALTH_PATH } }],
    }),
  };
}

function router(): JsonObject {
  return { name: "router", typed_config: typed("extensions.filters.http.router.v3.Router", {}) };
}
