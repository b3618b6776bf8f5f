import type { Http2ClientParams, TlsIdentity } from "@forage/proto/destination";
import type { Duration } from "@forage/proto/google/protobuf/duration";
import { type PortSet, parsePorts } from "../../endpoints/ports.ts";
import {
  type Parsed,
  parseAuthority,
  parseBoolean,
  parseChoice,
  parseDecimal,
  parseDnsName,
  parseDuration,
  parseInteger,
  parseSpiffeId,
} from "../../endpoints/values.ts";
import {
  type AnnotationProblem,
  DEFAULT_RETRY_BUDGET,
  type Protocol,
  type Retry,
  type ServiceHints,
} from "./service-hints.ts";

type Annotations = Readonly<Record<string, string>>;

/** The prefix of Forage's own annotations. An unknown key with this prefix is an error. */
const PREFIX = "forage.dev/";
const MAX_WINDOW = 2 ** 31 - 1;
const MAX_DURATION_MS = 24 * 3_600_000;

/** The parsers of all annotations that Destination supports. */
const readers = {
  "opaque-ports": parsePorts,
  protocol: parseProtocols,
  "opaque-transport-port": (text: string) => parseInteger(text, 1, 65_534),
  "tls-identity": (text: string) => (text.startsWith("spiffe:") ? parseSpiffeId(text) : parseDnsName(text)),
  "tls-server-name": parseDnsName,
  "authority-override": parseAuthority,
  // Kubernetes accepts both spellings.
  "topology-mode": (text: string) => parseChoice(text === "auto" ? "Auto" : text, ["Auto", "Disabled"]),
  retry: (text: string): Parsed<Retry> => parseChoice(text, ["none", "safe", "all"]),
  // The range that proxies accept. They ignore the whole budget if the value is outside of it.
  "retry-ratio": (text: string) => parseDecimal(text, 0, 1000),
  "retry-min-per-second": (text: string) => parseInteger(text, 0, 2 ** 32 - 1),
  "retry-ttl": (text: string) => parseDuration(text, 1000, 60_000),
  "http2-connection-window": (text: string) => parseInteger(text, 65_535, MAX_WINDOW),
  "http2-stream-window": (text: string) => parseInteger(text, 1, MAX_WINDOW),
  "http2-adaptive-flow-control": parseBoolean,
  "http2-keep-alive-interval": (text: string) => parseDuration(text, 1, MAX_DURATION_MS),
  "http2-keep-alive-timeout": (text: string) => parseDuration(text, 1, MAX_DURATION_MS),
  "http2-keep-alive-while-idle": parseBoolean,
  "http2-max-concurrent-reset-streams": (text: string) => parseInteger(text, 1, 2 ** 32 - 1),
  "http2-max-frame-size": (text: string) => parseInteger(text, 16_384, 2 ** 24 - 1),
  "http2-max-send-buffer": (text: string) => parseInteger(text, 1, 2 ** 32 - 1),
} satisfies Record<string, (text: string) => Parsed<unknown>>;

type Name = keyof typeof readers;
type Value<N extends Name> = Extract<ReturnType<(typeof readers)[N]>, { value: unknown }>["value"];

/** Other projects' names of the same annotations. Forage's own names take precedence. */
const ALIASES: Readonly<Record<string, Name>> = {
  "config.linkerd.io/opaque-ports": "opaque-ports",
  "service.kubernetes.io/topology-mode": "topology-mode",
  "mirror.linkerd.io/remote-gateway-identity": "tls-identity",
  "mirror.linkerd.io/remote-svc-fq-name": "authority-override",
};

/** Pairs of annotations of which the first one requires the second. */
const NEEDS: readonly (readonly [Name, Name])[] = [
  ["tls-server-name", "tls-identity"],
  ["http2-connection-window", "http2-stream-window"],
  ["http2-stream-window", "http2-connection-window"],
  ["http2-keep-alive-interval", "http2-keep-alive-timeout"],
  ["http2-keep-alive-timeout", "http2-keep-alive-interval"],
  ["http2-keep-alive-while-idle", "http2-keep-alive-interval"],
];

/**
 * Parses a service's annotations. Returns the hints, and a problem for each invalid annotation,
 * which counts as absent. Annotations of other projects are ignored.
 */
export function readAnnotations(annotations: Annotations): {
  readonly hints: ServiceHints;
  readonly problems: readonly AnnotationProblem[];
} {
  const values = new Map<Name, unknown>();
  const problems: AnnotationProblem[] = [];
  for (const [key, text] of Object.entries(annotations)) {
    const name = nameOf(key);
    if (name === undefined) {
      if (key.toLowerCase().startsWith(PREFIX))
        problems.push({
          key,
          problem: `is unknown; the known annotations are ${Object.keys(readers).join(", ")}`,
        });
      continue;
    }
    if (key !== PREFIX + name && annotations[PREFIX + name] !== undefined) continue;
    const parsed: Parsed<unknown> = readers[name](text.trim());
    if ("problem" in parsed) problems.push({ key, problem: parsed.problem });
    else values.set(name, parsed.value);
  }
  problems.push(...missing(annotations));
  return { hints: hintsOf((name) => values.get(name) as never), problems };
}

/** The hints of a service without annotations. */
export const noHints: ServiceHints = readAnnotations({}).hints;

type Get = <N extends Name>(name: N) => Value<N> | undefined;

function hintsOf(get: Get): ServiceHints {
  const ttl: Duration | undefined = get("retry-ttl") ?? DEFAULT_RETRY_BUDGET.ttl;
  const ports: PortSet | undefined = get("opaque-ports");
  return {
    opaquePorts: ports,
    protocols: get("protocol") ?? new Map<string, Protocol>(),
    opaqueTransportPort: get("opaque-transport-port") ?? 0,
    tlsIdentity: identityOf(get("tls-identity"), get("tls-server-name")),
    authorityOverride: get("authority-override"),
    http2: http2Of(get),
    retryBudget: {
      retryRatio: get("retry-ratio") ?? DEFAULT_RETRY_BUDGET.retryRatio,
      minRetriesPerSecond: get("retry-min-per-second") ?? DEFAULT_RETRY_BUDGET.minRetriesPerSecond,
      ttl,
    },
    retry: get("retry") ?? "none",
    zoneAware: get("topology-mode") !== "Disabled",
  };
}

function nameOf(key: string): Name | undefined {
  if (Object.hasOwn(ALIASES, key)) return ALIASES[key];
  const name = key.startsWith(PREFIX) ? key.slice(PREFIX.length) : "";
  return Object.hasOwn(readers, name) ? (name as Name) : undefined;
}

function missing(annotations: Annotations): AnnotationProblem[] {
  const given = new Set(Object.keys(annotations).map(nameOf));
  const problems = NEEDS.filter(([name, other]) => given.has(name) && !given.has(other)).map(
    ([name, other]) => ({ key: PREFIX + name, problem: `needs ${PREFIX}${other}` }),
  );
  const identity = annotations[`${PREFIX}tls-identity`] ?? "";
  // Proxies ignore an identity of this form without a server name.
  if (identity.startsWith("spiffe:") && !given.has("tls-server-name"))
    problems.push({ key: `${PREFIX}tls-identity`, problem: `needs ${PREFIX}tls-server-name` });
  return problems;
}

/** Parses `http2` for all ports, or a list such as `80=http2,mysql=opaque`. */
function parseProtocols(text: string): Parsed<ReadonlyMap<string, Protocol>> {
  const protocols = new Map<string, Protocol>();
  for (const item of text.split(",").map((part) => part.trim())) {
    const [, port = "", word = ""] = /^(?:([-a-z0-9]{1,63})=)?(\w{1,20})$/.exec(item) ?? [];
    const parsed = parseChoice<Protocol>(word, ["detect", "http2", "opaque"]);
    if ("problem" in parsed)
      return { problem: `must be detect, http2 or opaque, or a list such as 80=http2,mysql=opaque` };
    protocols.set(port, parsed.value);
  }
  return { value: protocols };
}

function identityOf(identity: string | undefined, serverName: string | undefined): TlsIdentity | undefined {
  if (identity === undefined) return undefined;
  if (!identity.startsWith("spiffe:")) {
    const strategy = { $case: "dnsLikeIdentity", value: { name: identity } } as const;
    return { strategy, serverName: { name: serverName ?? identity } };
  }
  if (serverName === undefined) return undefined;
  return {
    strategy: { $case: "uriLikeIdentity", value: { uri: identity } },
    serverName: { name: serverName },
  };
}

function http2Of(get: Get): Http2ClientParams | undefined {
  const [connection, stream] = [get("http2-connection-window"), get("http2-stream-window")];
  const adaptive = get("http2-adaptive-flow-control");
  const [interval, timeout] = [get("http2-keep-alive-interval"), get("http2-keep-alive-timeout")];
  const resets = get("http2-max-concurrent-reset-streams");
  const [frame, buffer] = [get("http2-max-frame-size"), get("http2-max-send-buffer")];
  const windows = connection !== undefined && stream !== undefined;
  const params: Http2ClientParams = {
    flowControl:
      windows || adaptive === true
        ? {
            initialConnectionWindowSize: windows ? connection : 0,
            initialStreamWindowSize: windows ? stream : 0,
            adaptiveFlowControl: adaptive ?? false,
          }
        : undefined,
    keepAlive:
      interval !== undefined && timeout !== undefined
        ? { interval, timeout, whileIdle: get("http2-keep-alive-while-idle") ?? false }
        : undefined,
    internals:
      resets !== undefined || frame !== undefined || buffer !== undefined
        ? { maxConcurrentResetStreams: resets ?? 0, maxFrameSize: frame ?? 0, maxSendBufSize: buffer ?? 0 }
        : undefined,
  };
  return Object.values(params).every((part) => part === undefined) ? undefined : params;
}
