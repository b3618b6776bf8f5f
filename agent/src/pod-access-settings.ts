import type { OpenPort, PodAccess } from "./network/access-rules.ts";

/** The operator's settings for pods' access to the host. */
export interface PodAccessSettings {
  /** `deny`: pods can't reach the addresses at which clouds provide the machine's credentials. */
  readonly metadata: "allow" | "deny";
  /** `limited`: on the host's addresses pods can reach only the agent's own services and `hostPorts`. */
  readonly host: "all" | "limited";
  readonly hostPorts: readonly OpenPort[];
}

/** Settings of ports at which the agent itself serves pods. */
export interface AgentPorts {
  readonly podAccess: PodAccessSettings;
  readonly dns: boolean;
  readonly destination: { readonly port: number | undefined };
  readonly gateway: { readonly httpPort: number; readonly httpsPort: number };
}

// With more open ports, the host would hardly be limited.
const OPEN_PORTS_MAX = 64;
const DNS_PORT = 53;

/** Parses `7600,9100/tcp,514/udp`, or a list of these. */
export function readOpenPorts(value: unknown): readonly OpenPort[] {
  const words = Array.isArray(value) ? value.map(String) : String(value ?? "").split(",");
  const ports = words.map((it) => it.trim()).filter((it) => it !== "");
  const read = ports.flatMap((it) => readOpenPort(it) ?? []);
  if (read.length === ports.length && read.length <= OPEN_PORTS_MAX) return read;
  throw new Error(`at most ${OPEN_PORTS_MAX} ports such as 7600 or 514/udp`);
}

/** Parses one port. The default protocol is TCP. */
function readOpenPort(text: string): OpenPort | undefined {
  const match = /^(\d{1,5})(?:\/(tcp|udp))?$/.exec(text);
  const port = Number(match?.[1]);
  if (match === null || port < 1 || port > 65_535) return undefined;
  return { protocol: match[2] === "udp" ? "udp" : "tcp", port };
}

/**
 * Returns the settings in the form of the network's rules. The ports of routes are always open, because any node may be
 * a gateway.
 */
export function podAccess({ podAccess: settings, dns, destination, gateway }: AgentPorts): PodAccess {
  const metadata = settings.metadata === "allow";
  if (settings.host === "all") return { metadata, host: undefined };
  const onBridge: readonly OpenPort[] = [
    ...(dns ? (["udp", "tcp"] as const).map((protocol) => ({ protocol, port: DNS_PORT })) : []),
    ...(destination.port === undefined ? [] : [{ protocol: "tcp", port: destination.port } as const]),
  ];
  const { httpPort, httpsPort } = gateway;
  const routes = [httpPort, httpsPort].map((port) => ({ protocol: "tcp", port }) as const);
  return { metadata, host: { onBridge, everywhere: [...routes, ...settings.hostPorts] } };
}
