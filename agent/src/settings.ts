import { isIP } from "node:net";
import { normalIp } from "@forage/common/ip";
import { nodeId } from "@forage/identity";
import { parseQuantity, wholeUnitsOf } from "@forage/scheduler";
import type { DevicePool } from "./devices/devices.ts";
import { parsePool } from "./devices/parse-pool.ts";
import { parsePodCidr, parsePodCidr6 } from "./network/pod-cidr.ts";
import type { PortRange } from "./network/port-allocator.ts";
import { type PodAccessSettings, readOpenPorts } from "./pod-access-settings.ts";
import {
  absolutePath,
  type HostPort,
  hostPort,
  hostPorts,
  matching,
  oneOf,
  onOrOff,
  wholeNumber,
} from "./setting-readers.ts";

export type { HostPort } from "./setting-readers.ts";

/** The agent's settings, checked. A small checker of our own, since a schema library would cost 8 MB on every host. */
export interface Settings {
  /** The directory of everything that the agent stores: journal, identity, logs, the network's records. */
  readonly dataDir: string;
  /** The directory of files that are worthless after a reboot. Best on tmpfs. */
  readonly runDir: string;
  readonly coordinator: HostPort;
  /** Further coordinators of the cluster. */
  readonly coordinators: readonly HostPort[];
  readonly joinTokenFile: string | undefined;
  readonly nodeName: string;
  /** Names what the agent makes in the kernel and in containerd. */
  readonly instance: string;
  readonly podCidr: string;
  /** The IPv6 range of pods. Undefined: pods have no IPv6, and there are no rules for it. */
  readonly podCidr6: string | undefined;
  readonly containerd: { readonly address: string; readonly namespace: string };
  readonly nerdctl: string;
  readonly cniBinDir: string;
  /** Undefined: no HTTP. */
  readonly http: { readonly listen: HostPort | undefined };
  readonly hostPortRange: PortRange;
  /** The address at which others reach this host's pods; undefined: determined automatically. */
  readonly advertiseAddress: string | undefined;
  /** The same by IPv6, beside one of IPv4. */
  readonly advertiseAddress6: string | undefined;
  readonly labels: Readonly<Record<string, string>>;
  /** Quantities reserved for the host itself, by resource. */
  readonly reserve: Readonly<Record<string, string>>;
  readonly podsMax: number;
  /** The devices that the host offers to containers, by resource name. */
  readonly devices: DevicePool;
  /** OCI runtimes, by the name that pods give as `runtime_class_name`: a program's path or a containerd runtime's name. */
  readonly runtimeClasses: Readonly<Record<string, string>>;
  /** Services are found under `svc.<this>`; the coordinator's has to be the same. */
  readonly clusterDomain: string;
  /** Whether the agent answers pods' DNS questions on the pods' bridge; else they ask the host's name servers. */
  readonly dns: boolean;
  /**
   * The ports on which Linkerd's Destination is served to this host's proxies, on the pods' bridge and on loopback; undefined:
   * not at all.
   */
  readonly destination: { readonly port: number | undefined };
  /** Unix socket where Nomad's Driver service is served; undefined: nowhere. */
  readonly nomad: { readonly socket: string | undefined };
  /** The destinations on this host and in its cloud that pods can reach. */
  readonly podAccess: PodAccessSettings;
  /** Sandboxes made ahead. */
  readonly preparedSandboxes: number;
  readonly restart: { readonly backOffBaseSeconds: number; readonly backOffCapSeconds: number };
  /**
   * The limits for unused images: they are removed after so many days (0: never), or from `highPercent` of the disk down to
   * `lowPercent`.
   */
  readonly images: { readonly unusedDays: number; readonly highPercent: number; readonly lowPercent: number };
  /** `nodeLimitBytes` undefined: a share of the disk. `streams`: of pods that don't say. */
  readonly logs: { readonly nodeLimitBytes: number | undefined; readonly streams: LogStreams };
  /**
   * The interface on which addresses of load balancers are announced, whatever their network; undefined: the interface of their
   * network.
   */
  readonly loadBalancer: { readonly interface: string | undefined };
  readonly gateway: GatewaySettings;
  /** Whether this host holds the content of workspaces. */
  readonly workspaces: { readonly enabled: boolean };
  readonly logLevel: LogLevel;
}

/** Settings of nodes that are gateways. */
export interface GatewaySettings {
  /** Envoy's program; undefined: looked for. */
  readonly envoy: string | undefined;
  /** The image with Envoy, for hosts that have no Envoy installed. */
  readonly image: string | undefined;
  /** Undefined: all of the host's. */
  readonly address: string | undefined;
  readonly httpPort: number;
  readonly httpsPort: number;
  /** The largest number of clients' connections at a time. */
  readonly connectionsMax: number;
  readonly memoryLimitBytes: number;
  /** The number of trusted proxies in front of the gateway. The client's address is taken from their headers. */
  readonly trustedProxies: number;
}

export type LogStreams = "combined" | "separate";
export type LogLevel = "trace" | "debug" | "info" | "warn" | "error";

export interface Setting<Value = unknown> {
  /** The setting's path in the file, with dots between groups. */
  readonly path: string;
  /** The value's form in the usage line. */
  readonly shape: string;
  /** Reads the value of the file, or the text of a flag or variable. Throws an Error that says what the value must be. */
  readonly read: (value: unknown) => Value;
}

const INSTANCE = /^[a-z0-9]{1,8}$/;
const IMAGE = /^[a-zA-Z0-9][a-zA-Z0-9._/:@-]{0,499}$/;
const DOMAIN = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?){0,8}$/;
// As the kernel takes them, but none that could be taken for an option.
const INTERFACE = /^[A-Za-z0-9_][A-Za-z0-9_.:@-]{0,14}$/;
const RUNTIME_CLASS = /^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$/;
// The forms that nerdctl accepts: a program, or the name of a shim.
const OCI_RUNTIME = /^\/[^\s,:"\0]{1,4000}$|^io\.containerd\.[a-z0-9-]+\.v\d+$/;
const RUNTIME_CLASSES_MAX = 64;
const LOG_STREAMS: readonly LogStreams[] = ["combined", "separate"];
const LEVELS: readonly LogLevel[] = ["trace", "debug", "info", "warn", "error"];

export const SETTINGS: readonly Setting[] = [
  { path: "dataDir", shape: "DIR", read: absolutePath },
  { path: "runDir", shape: "DIR", read: absolutePath },
  { path: "coordinator", shape: "HOST:PORT", read: hostPort },
  { path: "coordinators", shape: "HOST:PORT,…", read: hostPorts },
  { path: "joinTokenFile", shape: "FILE", read: absolutePath },
  { path: "nodeName", shape: "NAME", read: nodeName },
  { path: "instance", shape: "NAME", read: matching(INSTANCE, "1 to 8 lower-case letters or digits") },
  { path: "podCidr", shape: "CIDR", read: podCidr },
  { path: "podCidr6", shape: "CIDR", read: podCidr6 },
  { path: "containerd.address", shape: "SOCKET", read: absolutePath },
  {
    path: "containerd.namespace",
    shape: "NAME",
    read: matching(/^[A-Za-z0-9._-]{1,76}$/, "a namespace's name"),
  },
  { path: "nerdctl", shape: "FILE", read: absolutePath },
  { path: "cniBinDir", shape: "DIR", read: absolutePath },
  { path: "http.listen", shape: "HOST:PORT|off", read: listenAddress },
  { path: "hostPortRange", shape: "FIRST-LAST", read: portRange },
  { path: "advertiseAddress", shape: "ADDRESS", read: address },
  { path: "advertiseAddress6", shape: "ADDRESS", read: address6 },
  { path: "labels", shape: "KEY=VALUE,…", read: textMap },
  { path: "reserve", shape: "RESOURCE=QUANTITY,…", read: quantities },
  { path: "podsMax", shape: "N", read: wholeNumber(1, 1_000) },
  { path: "devices", shape: "JSON", read: parsePool },
  { path: "runtimeClasses", shape: "NAME=RUNTIME,…", read: runtimeClasses },
  { path: "clusterDomain", shape: "DOMAIN", read: matching(DOMAIN, "a domain such as cluster.local") },
  { path: "dns", shape: "on|off", read: onOrOff },
  { path: "destination.port", shape: "PORT|off", read: portOrOff },
  { path: "nomad.socket", shape: "SOCKET|off", read: pathOrOff },
  { path: "podAccess.metadata", shape: "allow|deny", read: oneOf(["allow", "deny"]) },
  { path: "podAccess.host", shape: "all|limited", read: oneOf(["all", "limited"]) },
  { path: "podAccess.hostPorts", shape: "PORT[/tcp|udp],…", read: readOpenPorts },
  { path: "preparedSandboxes", shape: "N", read: wholeNumber(0, 200) },
  { path: "restart.backOffBaseSeconds", shape: "SECONDS", read: wholeNumber(0, 3_600) },
  { path: "restart.backOffCapSeconds", shape: "SECONDS", read: wholeNumber(0, 86_400) },
  { path: "images.unusedDays", shape: "DAYS", read: wholeNumber(0, 3_650) },
  { path: "images.highPercent", shape: "PERCENT", read: wholeNumber(1, 100) },
  { path: "images.lowPercent", shape: "PERCENT", read: wholeNumber(0, 100) },
  { path: "logs.nodeLimit", shape: "QUANTITY", read: byteQuantity },
  { path: "logs.streams", shape: LOG_STREAMS.join("|"), read: oneOf(LOG_STREAMS) },
  { path: "loadBalancer.interface", shape: "NAME", read: matching(INTERFACE, "the name of an interface") },
  { path: "gateway.envoy", shape: "FILE", read: absolutePath },
  { path: "gateway.image", shape: "IMAGE", read: matching(IMAGE, "an image's reference") },
  { path: "gateway.address", shape: "ADDRESS", read: anyAddress },
  { path: "gateway.httpPort", shape: "PORT", read: wholeNumber(1, 65_535) },
  { path: "gateway.httpsPort", shape: "PORT", read: wholeNumber(1, 65_535) },
  { path: "gateway.connectionsMax", shape: "N", read: wholeNumber(10, 1_000_000) },
  { path: "gateway.memoryLimit", shape: "QUANTITY", read: byteQuantity },
  { path: "gateway.trustedProxies", shape: "N", read: wholeNumber(0, 10) },
  { path: "workspaces.enabled", shape: "on|off", read: onOrOff },
  { path: "logLevel", shape: LEVELS.join("|"), read: oneOf(LEVELS) },
];

export interface GivenValue {
  readonly value: unknown;
  /** The file, variable or flag it comes from. */
  readonly where: string;
}

/** Returns all problems at once, and settings only if there are none. */
export function checkSettings(
  given: ReadonlyMap<string, GivenValue>,
  hostName: string,
): { readonly settings?: Settings; readonly problems: readonly string[] } {
  const problems: string[] = [];
  const read = new Map<string, unknown>();
  for (const [path, { value, where }] of given) {
    const setting = SETTINGS.find((it) => it.path === path);
    if (setting === undefined) {
      problems.push(`${where}: ${path}: there is no such setting`);
      continue;
    }
    try {
      read.set(path, setting.read(value));
    } catch (error) {
      problems.push(`${where}: ${path}: must be ${error instanceof Error ? error.message : error}`);
    }
  }
  if (isIP(String(read.get("advertiseAddress"))) === 6 && read.has("advertiseAddress6"))
    problems.push("advertiseAddress6: goes beside an IPv4 address, and advertiseAddress is of IPv6");
  if (read.has("podAccess.hostPorts") && read.get("podAccess.host") !== "limited")
    problems.push("podAccess.hostPorts: goes with podAccess.host: limited; otherwise pods reach all ports");
  for (const path of ["dataDir", "coordinator"]) {
    if (!given.has(path)) problems.push(`${path}: must be set`);
  }
  return problems.length > 0 ? { problems } : { settings: withDefaults(read, hostName), problems };
}

function withDefaults(read: ReadonlyMap<string, unknown>, hostName: string): Settings {
  // Each was read by its own setting's function, which is what gives it its type.
  const get = <Value>(path: string, otherwise: Value): Value =>
    read.has(path) ? (read.get(path) as Value) : otherwise;
  const instance = get("instance", "main");
  return {
    dataDir: get("dataDir", ""),
    runDir: get("runDir", `/run/forage/agent-${instance}`),
    coordinator: get("coordinator", { host: "", port: 0 }),
    coordinators: get<readonly HostPort[]>("coordinators", []),
    joinTokenFile: get<string | undefined>("joinTokenFile", undefined),
    nodeName: get("nodeName", hostName.toLowerCase()),
    instance,
    podCidr: get("podCidr", "10.64.0.0/16"),
    podCidr6: get<string | undefined>("podCidr6", undefined),
    containerd: {
      address: get("containerd.address", "/run/containerd/containerd.sock"),
      namespace: get("containerd.namespace", "forage"),
    },
    nerdctl: get("nerdctl", "/usr/lib/forage/nerdctl"),
    cniBinDir: get("cniBinDir", "/usr/lib/cni"),
    http: { listen: get<HostPort | undefined>("http.listen", { host: "127.0.0.1", port: 7602 }) },
    hostPortRange: get("hostPortRange", { first: 20_000, last: 29_999 }),
    advertiseAddress: get<string | undefined>("advertiseAddress", undefined),
    advertiseAddress6: get<string | undefined>("advertiseAddress6", undefined),
    labels: get("labels", {}),
    reserve: get("reserve", {}),
    podsMax: get("podsMax", 110),
    devices: get<DevicePool>("devices", {}),
    runtimeClasses: get<Readonly<Record<string, string>>>("runtimeClasses", {}),
    clusterDomain: get("clusterDomain", "cluster.local"),
    dns: get("dns", true),
    destination: { port: get<number | undefined>("destination.port", undefined) },
    nomad: { socket: get<string | undefined>("nomad.socket", undefined) },
    podAccess: {
      metadata: get<PodAccessSettings["metadata"]>("podAccess.metadata", "deny"),
      host: get<PodAccessSettings["host"]>("podAccess.host", "all"),
      hostPorts: get<PodAccessSettings["hostPorts"]>("podAccess.hostPorts", []),
    },
    preparedSandboxes: get("preparedSandboxes", 20),
    restart: {
      backOffBaseSeconds: get("restart.backOffBaseSeconds", 10),
      backOffCapSeconds: get("restart.backOffCapSeconds", 300),
    },
    images: {
      unusedDays: get("images.unusedDays", 7),
      highPercent: get("images.highPercent", 85),
      lowPercent: get("images.lowPercent", 80),
    },
    logs: {
      nodeLimitBytes: get<number | undefined>("logs.nodeLimit", undefined),
      streams: get<LogStreams>("logs.streams", "combined"),
    },
    loadBalancer: { interface: get<string | undefined>("loadBalancer.interface", undefined) },
    gateway: {
      envoy: get<string | undefined>("gateway.envoy", undefined),
      image: get<string | undefined>("gateway.image", undefined),
      address: get<string | undefined>("gateway.address", undefined),
      httpPort: get("gateway.httpPort", 80),
      httpsPort: get("gateway.httpsPort", 443),
      connectionsMax: get("gateway.connectionsMax", 50_000),
      memoryLimitBytes: get("gateway.memoryLimit", 1024 ** 3),
      trustedProxies: get("gateway.trustedProxies", 0),
    },
    workspaces: { enabled: get("workspaces.enabled", false) },
    logLevel: get<LogLevel>("logLevel", "info"),
  };
}

function pathOrOff(value: unknown): string | undefined {
  return value === "off" || value === false ? undefined : absolutePath(value);
}

function portOrOff(value: unknown): number | undefined {
  return value === "off" || value === false ? undefined : wholeNumber(1, 65_535)(value);
}

function listenAddress(value: unknown): HostPort | undefined {
  if (value === "off" || value === false) return undefined;
  const parsed = hostPort(value);
  // It serves callers without credentials.
  if (parsed.host === "::1" || parsed.host === "localhost" || /^127\./.test(parsed.host)) return parsed;
  throw new Error("a loopback address with a port, or off");
}

function address(value: unknown): string {
  if (typeof value === "string" && isIP(value) === 4) return value;
  if (typeof value === "string" && isReachable6(value)) return normalIp(value);
  throw new Error("an IPv4 address, or an IPv6 address on a host that has no other");
}

function address6(value: unknown): string {
  if (typeof value === "string" && isReachable6(value)) return normalIp(value);
  throw new Error("an IPv6 address by which other hosts reach this one, not one of a link");
}

function isReachable6(text: string): boolean {
  return isIP(text) === 6 && !/%|^(fe[89ab]|::)/i.test(text);
}

function anyAddress(value: unknown): string {
  if (typeof value === "string" && isIP(value) !== 0) return value;
  throw new Error("an IP address");
}

/** Reads the node's name, which becomes part of its certificate. */
function nodeName(value: unknown): string {
  try {
    return nodeId(typeof value === "string" ? value : "");
  } catch {
    throw new Error("1 to 57 lower-case letters, digits, dots or dashes");
  }
}

function podCidr(value: unknown): string {
  if (typeof value !== "string") throw new Error("an address range such as 10.64.0.0/16");
  parsePodCidr(value);
  return value;
}

function podCidr6(value: unknown): string {
  if (typeof value !== "string") throw new Error("an IPv6 address range such as fd64::/64");
  parsePodCidr6(value);
  return value;
}

function portRange(value: unknown): PortRange {
  const match = typeof value === "string" ? /^(\d{1,5})-(\d{1,5})$/.exec(value) : null;
  const [first, last] = [Number(match?.[1]), Number(match?.[2])];
  if (match && first >= 1 && last <= 65_535 && first <= last) return { first, last };
  throw new Error("FIRST-LAST, two ports");
}

function textMap(value: unknown): Readonly<Record<string, string>> {
  const entries = typeof value === "string" ? pairs(value) : Object.entries(value ?? {});
  const texts = entries.map(([key, text]) => [key, typeof text === "number" ? String(text) : text] as const);
  if (typeof value === "object" || typeof value === "string") {
    if (texts.every(([key, text]) => key !== "" && typeof text === "string"))
      return Object.fromEntries(texts);
  }
  throw new Error("names with texts, key=value");
}

function pairs(text: string): [string, string][] {
  return text
    .split(",")
    .filter((part) => part.trim() !== "")
    .map((part) => {
      const equals = part.indexOf("=");
      return [part.slice(0, Math.max(0, equals)).trim(), part.slice(equals + 1).trim()];
    });
}

function quantities(value: unknown): Readonly<Record<string, string>> {
  const map = textMap(value);
  for (const text of Object.values(map)) parseQuantity(text);
  return map;
}

function runtimeClasses(value: unknown): Readonly<Record<string, string>> {
  const map = textMap(value);
  const entries = Object.entries(map);
  if (entries.length <= RUNTIME_CLASSES_MAX) {
    if (entries.every(([name, runtime]) => RUNTIME_CLASS.test(name) && OCI_RUNTIME.test(runtime))) return map;
  }
  throw new Error("names, each with an OCI runtime's absolute path or a name such as io.containerd.kata.v2");
}

function byteQuantity(value: unknown): number {
  const bytes = wholeUnitsOf(typeof value === "number" ? String(value) : String(value ?? ""));
  if (bytes > 0) return bytes;
  throw new Error("a quantity such as 2Gi");
}
