import { isIP } from "node:net";
import * as z from "zod/mini";
import {
  absolutePath,
  anyAddress,
  bytes,
  containerdNamespace,
  devices,
  domain,
  FORMS,
  hostAddress,
  hostAddress6,
  hostPort,
  hostPorts,
  imageReference,
  instanceName,
  interfaceName,
  labels,
  loopbackOrOff,
  nodeName,
  nodeNames,
  oneOf,
  onOrOff,
  openPorts,
  podCidr,
  podCidr6,
  portOrOff,
  portRange,
  quantities,
  registries,
  runtimeClasses,
  socketOrOff,
  wholeNumber,
} from "./setting-forms.ts";

export type { HostPort } from "./setting-forms.ts";

/** The configuration file. The comments are the meanings in the reference of agent.yaml. */
export const SETTINGS_SCHEMA = z.strictObject({
  /** The directory of everything that the agent stores: journal, identity, logs, volumes, the network's records. One agent at a time may use it. Must be set. */
  dataDir: absolutePath("DIR"),
  /** The directory of files that are worthless after a reboot. Best on tmpfs. Default: `/run/forage/agent-<instance>`. */
  runDir: z.optional(absolutePath("DIR")),
  /** The coordinator's gRPC port. Must be set. */
  coordinator: hostPort(),
  /** Further coordinators of the cluster; see docs/how-to/store-in-etcd.md. The agent begins with a random one, and moves on when one can't be reached or ends the connection. */
  coordinators: z._default(hostPorts(), []),
  /** The file with a join token, which only root may read. It is read when the host has no certificate, or when its certificate is refused or has expired. */
  joinTokenFile: z.optional(absolutePath("FILE")),
  /** The node's name: 1 to 57 lower-case letters, digits, dots or dashes. Default: the host's name. */
  nodeName: z.optional(nodeName()),
  /** Names what the agent makes in the kernel: 1 to 8 lower-case letters or digits. Several agents on one host need different ones. */
  instance: z._default(instanceName(), "main"),
  /** The range of pods' IPv4 addresses, with a prefix of /8 to /28. It may be the same on every host. */
  podCidr: z._default(podCidr(), "10.64.0.0/16"),
  /** The range of pods' IPv6 addresses, within `fc00::/7`, with a prefix of /48 to /120. Default: pods have no IPv6; see docs/reference/services.md. */
  podCidr6: z.optional(podCidr6()),
  /** The containerd that runs the containers. */
  containerd: z.prefault(
    z.strictObject({
      /** The socket of containerd. */
      address: z._default(absolutePath("SOCKET"), "/run/containerd/containerd.sock"),
      /** The namespace of the agent's containers. */
      namespace: z._default(containerdNamespace(), "forage"),
    }),
    {},
  ),
  /** The program nerdctl, at least 2.0. */
  nerdctl: z._default(absolutePath("FILE"), "/usr/lib/forage/nerdctl"),
  /** The directory of the CNI plugins `bridge` and `host-local`. */
  cniBinDir: z._default(absolutePath("DIR"), "/usr/lib/cni"),
  /** The HTTP port with health, readiness and metrics. */
  http: z.prefault(
    z.strictObject({
      /** The loopback address that it listens on. */
      listen: z.prefault(loopbackOrOff(), "127.0.0.1:7602"),
    }),
    {},
  ),
  /** The host's ports that pods' ports are published on. */
  hostPortRange: z.prefault(portRange(), "20000-29999"),
  /** The address at which other hosts reach this one. IPv4, unless the host has none. Default: the address from which the coordinator is reached. */
  advertiseAddress: z.optional(hostAddress()),
  /** The same for IPv6, in addition to one of IPv4. Default, with `podCidr6`: determined in the same way. */
  advertiseAddress6: z.optional(hostAddress6()),
  /** The node's labels, in addition to its own (`kubernetes.io/hostname`, `/os`, `/arch`). Reserved labels are ignored; see docs/reference/nodes.md. */
  labels: z._default(labels(), {}),
  /** Quantities of `cpu`, `memory` and `ephemeral-storage` that are kept for the host itself. Default: by the host's size. With less free disk than this, no new pod starts (`DiskPressure`). */
  reserve: z._default(quantities(), {}),
  /** The largest number of pods on the host. */
  podsMax: z._default(wholeNumber(1, 1_000), 110),
  /** The devices that the host offers to containers, by resource name; see docs/reference/agent.md. */
  devices: z._default(devices(), {}),
  /** OCI runtimes by the name that pods give as `runtime_class_name`: the absolute path of a program, or a name such as `io.containerd.kata.v2`. */
  runtimeClasses: z._default(runtimeClasses(), {}),
  /** The names of services end with `svc.` and this domain. The coordinator's setting has to be the same. */
  clusterDomain: z._default(domain(), "cluster.local"),
  /** Whether the agent answers DNS queries of this host and its pods; see docs/reference/services.md. Without it, pods use the host's name servers. */
  dns: z._default(onOrOff(), true),
  /** Linkerd's Destination for the proxies of this host; see docs/reference/destination.md. */
  destination: z.prefault(
    z.strictObject({
      /** The port on the pods' bridge and on loopback. */
      port: z.prefault(portOrOff(), "off"),
    }),
    {},
  ),
  /** Nomad's Driver service; see docs/nomad.md. */
  nomad: z.prefault(
    z.strictObject({
      /** The Unix socket on which it is served to root, for example `/run/forage/driver.sock`. */
      socket: z.prefault(socketOrOff(), "off"),
    }),
    {},
  ),
  /** The addresses on this host and in its cloud that pods reach; see docs/reference/agent.md. */
  podAccess: z.prefault(
    z.strictObject({
      /** Whether pods reach the addresses at which clouds give out the machine's credentials. */
      metadata: z._default(oneOf(["allow", "deny"]), "deny"),
      /** The ports that pods reach on this host's addresses: all, or the agent's own services and `hostPorts`. */
      host: z._default(oneOf(["all", "limited"]), "all"),
      /** Further ports of this host for pods, such as `[7600, 514/udp]`. Requires `host: limited`. */
      hostPorts: z._default(openPorts(), []),
    }),
    {},
  ),
  /** The number of network namespaces that are made ahead, so that a wave of pods starts at once. */
  preparedSandboxes: z._default(wholeNumber(0, 200), 20),
  /** The pause before a container that ends repeatedly is restarted. */
  restart: z.prefault(
    z.strictObject({
      /** The first pause before a restart. It doubles with each further end. */
      backOffBaseSeconds: z._default(wholeNumber(0, 3_600, "SECONDS"), 10),
      /** The longest pause. */
      backOffCapSeconds: z._default(wholeNumber(0, 86_400, "SECONDS"), 300),
    }),
    {},
  ),
  /** The limits of unused images, and the exchange of images with other nodes; see docs/how-to/use-local-images.md. */
  images: z.prefault(
    z.strictObject({
      /** An image that nothing has used for so many days is removed. 0: images are not removed for their age. */
      unusedDays: z._default(wholeNumber(0, 3_650, "DAYS"), 7),
      /** From this usage of their disk on, the images that have been unused for the longest time are removed … */
      highPercent: z._default(wholeNumber(1, 100, "PERCENT"), 85),
      /** … down to this usage. */
      lowPercent: z._default(wholeNumber(0, 100, "PERCENT"), 80),
      /** When images come from other nodes: if the registry can't be reached, before a query to it, or never. Any node sends images that pods name by a digest. */
      otherNodes: z._default(oneOf(["fallback", "first", "never"]), "fallback"),
      /** Nodes that are trusted for what a tag stands for, by their names. They send images that pods name by a tag, too. */
      tagsFrom: z._default(nodeNames(), []),
      /** The images that are sent to other nodes at one time. 0: none is sent. */
      transfers: z._default(wholeNumber(0, 32), 2),
      /** The bytes that all of them together send in a second. */
      transferRate: z.prefault(bytes(), "50Mi"),
    }),
    {},
  ),
  /** Mirrors, private authorities and client certificates, by the registry's name in images; see docs/how-to/use-local-images.md. */
  registries: z._default(registries(), {}),
  /** The logs of containers. */
  logs: z.prefault(
    z.strictObject({
      /** The limit for the logs of all containers together. Logs of runs that have ended are deleted first. Default: a tenth of the disk, at most `5Gi`. */
      nodeLimit: z.optional(bytes()),
      /** Whether containers keep stdout and stderr separate, unless their pods set `forage.dev/log-streams`. `separate` needs the unit `forage-logs`. */
      streams: z._default(oneOf(["combined", "separate"]), "combined"),
    }),
    {},
  ),
  /** Addresses of load balancers; see docs/reference/services.md. */
  loadBalancer: z.prefault(
    z.strictObject({
      /** The interface on which they are announced, whatever their network is. Default: the interface that has their network. */
      interface: z.optional(interfaceName()),
    }),
    {},
  ),
  /** Envoy, on nodes that serve routes; see docs/reference/gateway.md. */
  gateway: z.prefault(
    z.strictObject({
      /** Envoy's program. Default: the first one that is installed. */
      envoy: z.optional(absolutePath("FILE")),
      /** An image with Envoy, for hosts without it. */
      image: z.optional(imageReference()),
      /** The address that it listens on. Default: all of the host's, IPv6 included. */
      address: z.optional(anyAddress()),
      /** The port for HTTP. */
      httpPort: z._default(wholeNumber(1, 65_535, "PORT"), 80),
      /** The port for TLS. It is used once a route has a certificate or passes TLS through. */
      httpsPort: z._default(wholeNumber(1, 65_535, "PORT"), 443),
      /** The largest number of clients' connections at a time. More are refused. */
      connectionsMax: z._default(wholeNumber(10, 1_000_000), 50_000),
      /** Envoy's memory: from 90 % on it releases what it can, from 95 % on it refuses requests (503). */
      memoryLimit: z.prefault(bytes(), "1Gi"),
      /** The number of proxies in front of the gateway whose `X-Forwarded-For` is trusted. */
      trustedProxies: z._default(wholeNumber(0, 10), 0),
    }),
    {},
  ),
  /** Gitpod workspaces; see docs/workspaces.md. */
  workspaces: z.prefault(
    z.strictObject({
      /** Whether this host holds the content of workspaces. Needs `tar`, `zstd`, `git`, `setpriv` and `unshare`. The node gets the label `forage.dev/workspaces=true`. */
      enabled: z._default(onOrOff(), false),
    }),
    {},
  ),
  /** Least severity of log entries that are written. */
  logLevel: z._default(oneOf(["trace", "debug", "info", "warn", "error"]), "info"),
});

type Read = z.output<typeof SETTINGS_SCHEMA>;

/** The agent's settings, validated and with all defaults. */
export interface Settings extends Omit<Read, "runDir" | "nodeName" | "logs" | "gateway"> {
  readonly runDir: string;
  readonly nodeName: string;
  readonly logs: { readonly nodeLimitBytes: number | undefined; readonly streams: Read["logs"]["streams"] };
  readonly gateway: GatewaySettings;
}

/** The settings of nodes that are gateways. */
export interface GatewaySettings extends Omit<Read["gateway"], "memoryLimit"> {
  readonly memoryLimitBytes: number;
}

export interface Setting {
  /** The setting's path in the file, with dots between groups. */
  readonly path: string;
  /** The form of the value in the usage line. */
  readonly form: string;
}

/** All settings that have a value, in the order of the schema. */
export const SETTINGS: readonly Setting[] = settingsIn(SETTINGS_SCHEMA, "");

export interface GivenValue {
  readonly value: unknown;
  /** The file, variable or flag that contains it. */
  readonly where: string;
}

/** Validates values by their paths. Returns either all problems or the settings. */
export function checkSettings(
  given: ReadonlyMap<string, GivenValue>,
  hostName: string,
): { readonly settings?: Settings; readonly problems: readonly string[] } {
  const values = {};
  for (const [path, { value }] of given) put(values, path.split("."), value);
  const result = SETTINGS_SCHEMA.safeParse(values);
  if (!result.success) return { problems: problemsOf(result.error, given) };
  const problems = contradictionsIn(result.data);
  return problems.length > 0 ? { problems } : { settings: complete(result.data, hostName), problems };
}

/** Returns one problem for each path, because further ones add nothing. */
function problemsOf({ issues }: z.core.$ZodError, given: ReadonlyMap<string, GivenValue>): readonly string[] {
  const problems = new Map<string, string>();
  const report = (keys: readonly PropertyKey[], message: (isGiven: boolean) => string): void => {
    const path = keys.join(".");
    const where = whereOf(path, given);
    const prefix = where === undefined ? "" : `${where}: `;
    if (!problems.has(path)) problems.set(path, `${prefix}${path}: ${message(where !== undefined)}`);
  };
  for (const issue of issues) {
    if (issue.code === "unrecognized_keys")
      for (const key of issue.keys) report([...issue.path, key], () => "there is no such setting");
    else report(issue.path, (isGiven) => (isGiven ? textOf(issue) : "must be set"));
  }
  return [...problems.values()];
}

/** Returns the message of an issue. The forms of single settings have messages of their own. */
function textOf(issue: z.core.$ZodIssue): string {
  const isGroup = issue.code === "invalid_type" && issue.expected === "object";
  return isGroup ? "must be a group of settings, each with a name and a value" : issue.message;
}

function whereOf(path: string, given: ReadonlyMap<string, GivenValue>): string | undefined {
  return [...given].find(([it]) => it === path || it.startsWith(`${path}.`) || path.startsWith(`${it}.`))?.[1]
    .where;
}

function contradictionsIn({ advertiseAddress = "", advertiseAddress6, podAccess }: Read): readonly string[] {
  const problems: string[] = [];
  if (isIP(advertiseAddress) === 6 && advertiseAddress6 !== undefined)
    problems.push("advertiseAddress6: is only for an advertiseAddress of IPv4, which is of IPv6 here");
  if (podAccess.hostPorts.length > 0 && podAccess.host !== "limited")
    problems.push("podAccess.hostPorts: is only for podAccess.host: limited; otherwise pods reach all ports");
  return problems;
}

function complete(read: Read, hostName: string): Settings {
  const { nodeLimit, streams } = read.logs;
  const { memoryLimit, ...gateway } = read.gateway;
  return {
    ...read,
    runDir: read.runDir ?? `/run/forage/agent-${read.instance}`,
    nodeName: read.nodeName ?? hostName.toLowerCase(),
    logs: { nodeLimitBytes: nodeLimit, streams },
    gateway: { ...gateway, memoryLimitBytes: memoryLimit },
  };
}

/** Puts a value into its group. A value in place of a group is kept there, so that it is reported. */
function put(group: Record<string, unknown>, [key = "", ...rest]: readonly string[], value: unknown): void {
  if (rest.length === 0) {
    group[key] = value;
    return;
  }
  group[key] ??= {};
  const inner = group[key];
  if (isRecord(inner)) put(inner, rest, value);
}

function settingsIn(group: z.ZodMiniObject, prefix: string): readonly Setting[] {
  return Object.entries(group.shape).flatMap(([key, outer]) => {
    const path = prefix + key;
    const schema = withoutDefault(outer);
    if (schema instanceof z.ZodMiniObject) return settingsIn(schema, `${path}.`);
    return [{ path, form: FORMS.get(schema)?.form ?? "" }];
  });
}

function withoutDefault(schema: z.core.$ZodType): z.core.$ZodType {
  const hasInner =
    schema instanceof z.ZodMiniDefault ||
    schema instanceof z.ZodMiniPrefault ||
    schema instanceof z.ZodMiniOptional;
  return hasInner ? schema.def.innerType : schema;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
