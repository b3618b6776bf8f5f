import type { GatewayHost } from "@forage/proto/forage/agent/v1/agent";
import { accessLog } from "./access-log.ts";
import { weightsOf } from "./backends.ts";
import { fileSource } from "./envoy-paths.ts";
import { type HttpManagerOptions, httpManager } from "./http-manager.ts";
import { type JsonObject, typed } from "./json.ts";
import { endsTls, type Ports } from "./virtual-hosts.ts";

export interface ListenerOptions extends HttpManagerOptions {
  /** The address to listen on. "::" includes IPv4. */
  readonly address: string;
  readonly ports: Ports;
  /** Ids of the certificates that Envoy has. A host with any other certificate is not served by HTTPS. */
  readonly certificates: ReadonlySet<string>;
}

const BUFFER_BYTES = 32 * 1024;
const BACKLOG = 1_024;
/** The limit for a client's TLS hello. */
const HELLO_TIMEOUT = "10s";

/**
 * Returns the listener for plain HTTP, and the one for HTTPS once a host needs it. Each name has a filter chain of its
 * own, so that changes of other hosts keep its connections.
 */
export function listenersOf(hosts: ReadonlyMap<string, GatewayHost>, options: ListenerOptions): JsonObject[] {
  const chains = [...hosts.values()]
    .sort((a, b) => (a.hostname < b.hostname ? -1 : 1))
    .flatMap((host) => chainOf(host, options));
  const plain = listener("http", options.ports.http, options, {
    filter_chains: [{ name: "http", filters: [httpManager("http", options)] }],
  });
  if (chains.length === 0) return [plain];
  const encrypted = listener("https", options.ports.https, options, {
    listener_filters: [
      {
        name: "tls",
        typed_config: typed("extensions.filters.listener.tls_inspector.v3.TlsInspector", {}),
      },
    ],
    listener_filters_timeout: HELLO_TIMEOUT,
    filter_chains: chains,
  });
  return [plain, encrypted];
}

function listener(name: string, port: number, { address }: ListenerOptions, fields: JsonObject): JsonObject {
  return typed("config.listener.v3.Listener", {
    name,
    address: {
      socket_address: { address, port_value: port, ...(address === "::" && { ipv4_compat: true }) },
    },
    per_connection_buffer_limit_bytes: BUFFER_BYTES,
    tcp_backlog_size: BACKLOG,
    // A second program on the port must fail instead of sharing it.
    enable_reuse_port: false,
    ...fields,
  });
}

function chainOf(host: GatewayHost, options: ListenerOptions): JsonObject[] {
  const { hostname, passthrough, certificate } = host;
  const match = {
    transport_protocol: "tls",
    ...(hostname !== "*" && { server_names: [hostname] }),
  };
  const chain = { name: hostname, filter_chain_match: match };
  if (passthrough.length > 0) return [{ ...chain, filters: [passthroughFilter(host, options)] }];
  if (!endsTls(host) || !options.certificates.has(certificate)) return [];
  const filters = [httpManager("https", options)];
  return [{ ...chain, filters, transport_socket: tlsSocket(certificate, options) }];
}

/** Returns the chain that passes the encrypted stream on to a backend that decrypts it. */
function passthroughFilter({ hostname, passthrough }: GatewayHost, options: ListenerOptions): JsonObject {
  const weights = weightsOf(passthrough);
  const [first] = weights;
  return {
    name: "tcp",
    typed_config: typed("extensions.filters.network.tcp_proxy.v3.TcpProxy", {
      stat_prefix: hostname,
      ...(weights.length === 1 ? { cluster: first?.name } : { weighted_clusters: { clusters: weights } }),
      max_connect_attempts: 3,
      access_log: accessLog(options.accessLog, "stream"),
    }),
  };
}

function tlsSocket(certificate: string, { places }: ListenerOptions): JsonObject {
  return {
    name: "tls",
    typed_config: typed("extensions.transport_sockets.tls.v3.DownstreamTlsContext", {
      common_tls_context: {
        alpn_protocols: ["h2", "http/1.1"],
        tls_params: { tls_minimum_protocol_version: "TLSv1_2" },
        tls_certificate_sds_secret_configs: [
          { name: certificate, sds_config: fileSource(places.secret(certificate)) },
        ],
      },
    }),
  };
}
