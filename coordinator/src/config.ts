import { readFileSync } from "node:fs";
import { isIP } from "node:net";
import { parseArgs } from "node:util";
import { messageOf } from "@forage/common/message-of";
import { parse } from "yaml";
import * as z from "zod";
import { DEFAULT_EVENT_LIMITS } from "./events/limits.ts";
import { helpText } from "./help-text.ts";
import { parseIpRange } from "./ip/ip-range.ts";
import { NOTIFICATIONS_SCHEMA } from "./notifications/settings.ts";
import { ETCD_SCHEMA } from "./store/index.ts";
import { WORKSPACES_SCHEMA } from "./workspaces/settings.ts";

const address = z
  .string()
  .regex(/^(\[[0-9a-fA-F:]+\]|[^:]+):\d{1,5}$/, "must be HOST:PORT")
  .refine((text) => Number(text.slice(text.lastIndexOf(":") + 1)) <= 65_535, "has a port above 65535")
  .describe("HOST:PORT that it listens on.");
const listener = z.strictObject({ listen: address });

const virtualIpRange = (family: 4 | 6) =>
  z
    .string()
    .refine(
      (text) => !text.includes("-") && parseIpRange(text)?.family === family,
      `must be an IPv${family} CIDR`,
    );

const ipRange = z
  .string()
  .refine((text) => parseIpRange(text) !== undefined, "must be a CIDR or FIRST-LAST, of IPv4 or IPv6");

/** An authority that speaks ACME (RFC 8555). */
const acmeSettings = z.strictObject({
  /** The URL of the ACME directory, such as https://acme-v02.api.letsencrypt.org/directory. */
  directory: z.url({ protocol: /^https$/, error: "must be an https URL" }),
  /** The mail address for the authority's warnings. */
  email: z.email({ error: "must be a mail address" }).optional(),
  /** Confirms that the operator has read and accepts the authority's terms of service. */
  termsAgreed: z.boolean().default(false),
  /** PEM with the roots for the directory's own TLS, in place of the public ones. */
  caFile: z.string().startsWith("/").optional(),
  /** External account binding, for authorities that require a known customer. */
  externalAccountBinding: z
    .strictObject({
      /** The account's key id, from the authority. */
      keyId: z.string().min(1),
      /** The key in base64url; only the coordinator may read the file. */
      hmacKeyFile: z.string().startsWith("/"),
    })
    .optional(),
});

/** The configuration file. Times are in seconds, as their names say. */
export const CONFIG_SCHEMA = z.strictObject({
  /** The directory of everything the coordinator stores: records, certificate authority and keys. */
  dataDir: z.string().startsWith("/"),
  /** The listener for all gRPC services, over TLS. */
  grpc: listener.default({ listen: "0.0.0.0:7600" }),
  /** Health, readiness, metrics, and the JSON API and the dashboard, which are served over loopback and TLS only. */
  http: z
    .strictObject({
      listen: address,
      tls: z.boolean().default(false).describe("Serves over TLS."),
      podDomain: z
        .string()
        .regex(/^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/, "must be a domain in lower case")
        .optional()
        .describe(
          "The domain below which the dashboard opens ports of pods, each under a host name of its own; `off` for none. Browsers must resolve every name below it to this coordinator. Default: `localhost` without TLS, and off with it.",
        ),
    })
    .default({ listen: "127.0.0.1:7601", tls: false }),
  /** Destination look-ups in plain text, for proxies on the same host only; "off" for none. */
  destination: z.union([listener, z.literal("off")]).default("off"),
  /** Further names and addresses under which clients reach the gRPC port. */
  names: z.array(z.string()).default([]),
  /** The place of the coordinator's records. Default: a store on the disk, below `dataDir`. */
  store: z
    .strictObject({
      /** The cluster of etcd (3.6 or later) that holds the store; see docs/how-to/store-in-etcd.md. */
      etcd: ETCD_SCHEMA.optional(),
    })
    .prefault({}),
  /** Backups of the store that are written and verified while the coordinator serves. */
  backups: z
    .strictObject({
      /** Whether backups are written by schedule. */
      enabled: z.boolean().default(true),
      /** The time between two backups, in hours. */
      intervalHours: z.number().min(0.25).max(8_760).default(24),
      /** The number of backups that are kept, of scheduled ones and of those on demand each; the oldest are removed first. */
      keep: z.number().int().min(1).max(1_000).default(7),
      /** The directory of the backups, which the coordinator must be able to write to. Default: `backups` below `dataDir`. */
      directory: z.string().startsWith("/").optional(),
    })
    .prefault({}),
  /** The cluster's name, which its authority's certificate carries. */
  cluster: z.string().default("forage"),
  /** The domain below which services have their names. */
  clusterDomain: z.string().default("cluster.local"),
  /** The file to which the first start writes an administrator's token. */
  adminTokenFile: z.string().startsWith("/").optional(),
  /** The keys that encrypt secrets. The first one encrypts new secrets. Default: made at the first start below `dataDir`. */
  secretKeyFile: z.string().startsWith("/").optional(),
  /** The issuer and the audience of pods' identity tokens. Default: the cluster's id. */
  identityIssuer: z.string().min(1).max(1_000).optional(),
  /** The node score: pack fills nodes up; kube-most and kube-least work as MostAllocated and LeastAllocated of kube-scheduler. */
  profile: z.enum(["pack", "kube-most", "kube-least"]).default("pack"),
  /** Time limits of rollouts. */
  rollout: z
    .strictObject({
      /** A rollout without progress for this time has failed. */
      progressDeadlineSeconds: z.number().positive().max(86_400).default(600),
      /** A rollout whose pods are unschedulable for this time has failed. */
      placementDeadlineSeconds: z.number().positive().max(86_400).default(20),
      /** A pod counts as available once it has been ready for this time. */
      stableSeconds: z.number().min(0).max(3_600).default(1),
    })
    .prefault({}),
  /** Addresses of services. */
  services: z
    .strictObject({
      /** A CIDR that nothing else in reach of the hosts uses. */
      virtualIps: virtualIpRange(4).default("10.96.0.0/16"),
      /** The same for IPv6: services then have one of each. Default: none. */
      virtualIps6: virtualIpRange(6).optional(),
      /** Open on every host. */
      nodePorts: z
        .string()
        .refine((text) => portRange(text) !== undefined, "must be FIRST-LAST, such as 30000-32767")
        .default("30000-32767"),
      /** Addresses for services of type LoadBalancer. They belong to the hosts' own networks, and nothing else uses them. */
      loadBalancerIps: z.array(ipRange).max(100).default([]),
    })
    .prefault({}),
  /** The issuer of certificates for routes that terminate TLS and name no secret. */
  certificates: z
    .strictObject({
      /** The kind of issuer: off, a development authority of the cluster, or an ACME authority. */
      issuer: z.enum(["off", "self-signed", "acme"]).default("off"),
      /** The ACME authority (RFC 8555), for the issuer acme. */
      acme: acmeSettings.optional(),
    })
    .prefault({}),
  /** Limits of stored events. */
  events: z
    .strictObject({
      /** The largest number of events; the oldest are removed first. */
      maxCount: z.number().int().min(100).max(1_000_000).default(DEFAULT_EVENT_LIMITS.maxCount),
      /** The largest total size of events, in MiB. */
      maxMegabytes: z
        .number()
        .min(1)
        .max(1_000)
        .default(DEFAULT_EVENT_LIMITS.maxBytes / 1024 / 1024),
    })
    .prefault({}),
  /** Receivers that events are posted to, at most 16; see docs/reference/events.md. Default: none. */
  notifications: NOTIFICATIONS_SCHEMA,
  /** Settings of autoscaling. */
  autoscaling: z
    .strictObject({
      /** The interval at which pods of autoscaled workloads are measured and their number is decided. */
      intervalSeconds: z.number().min(1).max(300).default(15),
    })
    .prefault({}),
  /** The interval between agents' heartbeats. */
  heartbeatIntervalSeconds: z.number().min(0.1).max(60).default(2.5),
  /** The limits for unreachable nodes and the eviction of their pods. */
  nodes: z
    .strictObject({
      /** A node without heartbeats for this time is unreachable. Default: three heartbeats, at least 7.5. */
      unreachableSeconds: z.number().min(1).max(3_600).optional(),
      /** The time after a start in which no node counts as unreachable; up to four times as long while nodes return one by one. */
      startGraceSeconds: z.number().min(0).max(3_600).default(15),
      /** The time for which pods without an own toleration tolerate an unreachable node. */
      unreachableTolerationSeconds: z.number().min(0).max(86_400).default(30),
      /** The time after the return of the last node in which no pod is replaced, after most nodes were lost at once. */
      recoveryGraceSeconds: z.number().min(0).max(3_600).default(30),
      /** The same for a node that reports that it can't run pods. */
      notReadyTolerationSeconds: z.number().min(0).max(86_400).default(300),
    })
    .prefault({}),
  /** The certificates that nodes identify with. */
  nodeCertificates: z
    .strictObject({
      /** The validity of a node's certificate. Agents renew after a third of it. */
      lifetimeDays: z.number().min(0.01).max(3_650).default(30),
      /** The time after its end for which a certificate may still be renewed, unless its node was removed or revoked. */
      graceDays: z.number().min(0).max(3_650).default(90),
    })
    .prefault({}),
  /** Moves pods to better nodes automatically. Without it, pods move only on `forage rebalance`. */
  rebalance: z
    .strictObject({
      /** Time between two evaluations. */
      intervalSeconds: z.number().min(10).max(86_400),
      /** The largest number of pods to move each time. */
      maxMoves: z.number().int().min(1).max(20).default(1),
      /** The goal of moves: spread replicas over nodes, or empty nodes. */
      goal: z.enum(["spread", "pack"]).default("spread"),
    })
    .optional(),
  /** Gitpod workspaces; see docs/workspaces.md. */
  workspaces: WORKSPACES_SCHEMA.prefault({}),
  /** Least severity of log entries that are written. */
  logLevel: z.enum(["trace", "debug", "info", "warn", "error"]).default("info"),
});

export type Config = z.infer<typeof CONFIG_SCHEMA>;

/** The arguments of the command line. */
export interface CommandLine {
  readonly config: Config;
  /** The words that are not flags: a task instead of serving. */
  readonly words: readonly string[];
  readonly epoch: string | undefined;
  /** The file with the token for `join`. */
  readonly tokenFile: string | undefined;
  /** Whether a new, empty store may be created although the cluster's authority exists. */
  readonly newStore: boolean;
  /** Whether `restore` replaces an existing store. */
  readonly replace: boolean;
  /** Whether the question of a replacement is already answered with yes. */
  readonly yes: boolean;
  /** The systemd unit that a replacement stops and starts. */
  readonly unit: string | undefined;
}

export interface HostPort {
  readonly host: string;
  readonly port: number;
}

/** Parses `FIRST-LAST`. Returns undefined if it is not a range of ports. */
export function portRange(text: string): { readonly first: number; readonly last: number } | undefined {
  const match = /^(\d{1,5})-(\d{1,5})$/.exec(text);
  if (match === null) return undefined;
  const [first, last] = [Number(match[1]), Number(match[2])];
  return first >= 1 && first <= last && last <= 65_535 ? { first, last } : undefined;
}

export class ConfigError extends Error {
  override readonly name = "ConfigError";
}

/** Returns the configuration and the other arguments of the command line. */
export function readCommandLine(
  argv: readonly string[],
  environment: Readonly<Record<string, string | undefined>>,
): CommandLine {
  const { values, positionals } = readFlags(argv);
  const { epoch, "new-store": newStore = false, "token-file": tokenFile } = values;
  const { replace = false, yes = false, unit } = values;
  const words = positionals;
  return { config: settle(values, environment), words, epoch, newStore, tokenFile, replace, yes, unit };
}

/** Returns the help text if the command line requests it, otherwise undefined. */
export function readHelp(argv: readonly string[]): string | undefined {
  const { values, positionals } = readFlags(argv);
  return values.help === true ? helpText(positionals[0]) : undefined;
}

/**
 * Reads the configuration. Flags take precedence over environment variables (FORAGE_…), and these
 * over the file. Throws ConfigError with the setting and its valid values.
 */
export function readConfig(
  argv: readonly string[],
  environment: Readonly<Record<string, string | undefined>>,
): Config {
  return settle(readFlags(argv).values, environment);
}

function settle(flags: Flags, environment: Readonly<Record<string, string | undefined>>): Config {
  const file = flags.config ?? environment.FORAGE_COORDINATOR_CONFIG;
  const settings: Record<string, unknown> = file === undefined ? {} : readFile(file);
  override(settings, "dataDir", flags["data-dir"] ?? environment.FORAGE_DATA_DIR);
  override(settings, "logLevel", flags["log-level"] ?? environment.FORAGE_LOG_LEVEL);
  override(settings, "grpc", listen(flags.grpc ?? environment.FORAGE_GRPC));
  const http = listen(flags.http ?? environment.FORAGE_HTTP);
  // The flag sets only the address, and keeps `tls` from the file.
  override(settings, "http", http && Object.assign({}, settings.http, http));
  override(settings, "destination", listen(flags.destination ?? environment.FORAGE_DESTINATION));
  const result = CONFIG_SCHEMA.safeParse(settings);
  if (result.success) return checked(result.data, file ?? "configuration");
  const problems = result.error.issues.map(
    ({ path, message }) => `${path.join(".") || "configuration"}: ${message}`,
  );
  throw new ConfigError(`${file === undefined ? "configuration" : file}: ${problems.join("; ")}`);
}

export function hostPort(text: string): HostPort {
  const colon = text.lastIndexOf(":");
  return { host: text.slice(0, colon).replace(/^\[|\]$/g, ""), port: Number(text.slice(colon + 1)) };
}

function checked(config: Config, file: string): Config {
  const { unreachableSeconds = Number.POSITIVE_INFINITY } = config.nodes;
  if (unreachableSeconds < 2 * config.heartbeatIntervalSeconds) {
    throw new ConfigError(
      `${file}: nodes.unreachableSeconds: must be at least two heartbeats (${2 * config.heartbeatIntervalSeconds}), as one may be late`,
    );
  }
  checkCertificates(config.certificates, file);
  checkRanges(config.services, file);
  checkContent(config, file);
  if (config.destination !== "off" && !isLoopback(hostPort(config.destination.listen).host)) {
    throw new ConfigError(
      `destination.listen: ${config.destination.listen} is not a loopback address; clients on other hosts must use the TLS port, which authenticates them`,
    );
  }
  return config;
}

/** Rejects a directory for archives that only one of several coordinators has. */
function checkContent({ store, workspaces: { enabled, content } }: Config, file: string): void {
  const isShared = content.s3 !== undefined || content.directory !== undefined;
  if (!enabled || store.etcd === undefined || isShared) return;
  throw new ConfigError(
    `${file}: workspaces.content: with store.etcd, the next coordinator that leads needs the archives: set s3, or directory to one that all coordinators share`,
  );
}

/** Rejects address ranges for outside clients that can't be reached from outside. */
function checkRanges({ virtualIps, virtualIps6, loadBalancerIps }: Config["services"], file: string): void {
  for (const text of loadBalancerIps) {
    const pool = parseIpRange(text);
    for (const other of [virtualIps, virtualIps6]) {
      const range = other === undefined ? undefined : parseIpRange(other);
      if (pool === undefined || range === undefined) continue;
      if (range.has(pool.at(0)) || pool.has(range.at(0)))
        throw new ConfigError(`${file}: services.loadBalancerIps: ${text} overlaps the virtual IPs ${other}`);
    }
  }
}

function checkCertificates({ issuer, acme }: Config["certificates"], file: string): void {
  const fail = (what: string): never => {
    throw new ConfigError(`${file}: certificates${what}`);
  };
  if (issuer !== "acme" && acme !== undefined)
    fail(`.acme: is for the issuer acme, and the issuer is ${issuer}: set certificates.issuer to acme`);
  if (issuer !== "acme") return;
  if (acme === undefined) fail(".acme: must name the authority's directory");
  else if (!acme.termsAgreed)
    fail(".acme.termsAgreed: must be true: read the authority's terms of service first");
}

function isLoopback(host: string): boolean {
  return host === "localhost" || host === "::1" || (isIP(host) === 4 && host.startsWith("127."));
}

type Flags = ReturnType<typeof readFlags>["values"];

function readFlags(argv: readonly string[]) {
  const text = { type: "string" } as const;
  const options = {
    config: text,
    "data-dir": text,
    grpc: text,
    http: text,
    destination: text,
    "log-level": text,
    epoch: text,
    "token-file": text,
    "new-store": { type: "boolean" },
    replace: { type: "boolean" },
    yes: { type: "boolean" },
    unit: text,
    help: { type: "boolean", short: "h" },
  } as const;
  try {
    return parseArgs({ args: [...argv], allowPositionals: true, options });
  } catch (cause) {
    throw new ConfigError(`${messageOf(cause)}\n${helpText(undefined)}`, {
      cause,
    });
  }
}

function readFile(path: string): Record<string, unknown> {
  try {
    const value: unknown = parse(readFileSync(path, "utf8"), { prettyErrors: true }) ?? {};
    if (typeof value === "object" && !Array.isArray(value)) return value as Record<string, unknown>;
  } catch (cause) {
    throw new ConfigError(`${path}: ${messageOf(cause)}`, { cause });
  }
  throw new ConfigError(`${path}: must contain settings, one \`name: value\` in each line`);
}

function listen(value: string | undefined): unknown {
  return value === undefined || value === "off" ? value : { listen: value };
}

function override(settings: Record<string, unknown>, name: string, value: unknown): void {
  if (value !== undefined) settings[name] = value;
}
