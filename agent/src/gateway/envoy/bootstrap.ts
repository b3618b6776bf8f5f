import { type EnvoyPaths, fileSource } from "./envoy-paths.ts";
import { type JsonObject, typed } from "./json.ts";

export interface BootstrapOptions {
  readonly places: EnvoyPaths;
  readonly node: string;
  readonly instance: string;
  /** The limit of concurrent client connections. Further ones are refused. */
  readonly connectionsMax: number;
  /** The limit of the proxy's memory. From 90 % of it, Envoy first releases memory, then refuses requests. */
  readonly memoryLimitBytes: number;
}

/** The limit for the size of a compiled regular expression. Envoy's default of 100 rejects `[a-z]{100}`. */
const REGEX_PROGRAM_MAX = 2_000;

/** Returns Envoy's bootstrap configuration. Everything else comes from files that may change. */
export function bootstrapOf(options: BootstrapOptions): JsonObject {
  const { places, node, instance } = options;
  return {
    node: { id: node, cluster: `forage-${instance}` },
    // Only the socket's owner may open it, because the interface can stop the proxy.
    admin: { address: { pipe: { path: places.adminSocket, mode: 0o600 } } },
    dynamic_resources: {
      lds_config: fileSource(places.listeners),
      cds_config: fileSource(places.clusters),
    },
    layered_runtime: {
      layers: [
        {
          name: "forage",
          static_layer: {
            "re2.max_program_size.error_level": REGEX_PROGRAM_MAX,
            "re2.max_program_size.warn_level": REGEX_PROGRAM_MAX,
          },
        },
      ],
    },
    stats_config: { stats_matcher: { inclusion_list: { patterns: FIGURES } } },
    overload_manager: overloadManager(options),
  };
}

/** The statistics that operators need or the agent reads. Envoy has 150 statistics for each service. */
const FIGURES: readonly JsonObject[] = [
  ...[
    "listener_manager.",
    "cluster_manager.",
    "server.",
    "overload.",
    "http.",
    "listener.",
    "vhost.",
    "tcp.",
  ].map((prefix) => ({ prefix })),
  {
    safe_regex: {
      regex:
        "cluster\\..*\\.(membership_(total|healthy)|outlier_detection\\.ejections_active|update_rejected" +
        "|upstream_cx_(total|active|connect_fail|connect_timeout|rx_bytes_total|tx_bytes_total|overflow)" +
        "|upstream_rq_(total|active|time|timeout|retry|pending_overflow|tx_reset|rx_reset|[1-5]xx))",
    },
  },
];

function overloadManager({ connectionsMax, memoryLimitBytes }: BootstrapOptions): JsonObject {
  const heap = "envoy.resource_monitors.fixed_heap";
  const action = (name: string, value: number): JsonObject => ({
    name: `envoy.overload_actions.${name}`,
    triggers: [{ name: heap, threshold: { value } }],
  });
  return {
    refresh_interval: "0.25s",
    resource_monitors: [
      {
        name: heap,
        typed_config: typed("extensions.resource_monitors.fixed_heap.v3.FixedHeapConfig", {
          max_heap_size_bytes: memoryLimitBytes,
        }),
      },
      {
        name: "envoy.resource_monitors.global_downstream_max_connections",
        typed_config: typed(
          "extensions.resource_monitors.downstream_connections.v3.DownstreamConnectionsConfig",
          { max_active_downstream_connections: connectionsMax },
        ),
      },
    ],
    actions: [action("shrink_heap", 0.9), action("stop_accepting_requests", 0.95)],
  };
}
