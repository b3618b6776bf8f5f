import { CliError } from "../errors.ts";

/** Part of a manifest, with field names as they are written. */
export type Mapping = Readonly<Record<string, unknown>>;

/** One port of the service, and the port of the container behind it. */
export interface Publication {
  readonly port: number;
  readonly target: number;
  readonly protocol: "TCP" | "UDP" | "SCTP";
}

export interface RouteTarget {
  readonly hostname: string;
  /** The path, which begins with "/". */
  readonly path: string;
}

/**
 * A variable of the container. `source` is its field of a manifest: `value`, `secret_ref` or
 * `config_ref`.
 */
export interface Environment {
  readonly name: string;
  readonly source: Mapping;
}

/** A volume with its path in the container. `source` is its field of a manifest. */
export interface Bind {
  readonly source: Mapping;
  readonly path: string;
  readonly readOnly: boolean;
}

export interface Amount {
  readonly request: string | undefined;
  readonly limit: string | undefined;
}

/** A condition for the labels of nodes. */
export interface Constraint {
  readonly key: string;
  readonly operator: "In" | "NotIn" | "Exists" | "DoesNotExist";
  readonly values: readonly string[];
}

const MAX_NAME_LENGTH = 63;

/**
 * Returns the last segment of an image's name as a DNS label: `registry.example/team/web_app:1`
 * becomes `web-app`.
 */
export function nameOf(image: string): string {
  const [bare = ""] = image.split("@");
  const last = bare.slice(bare.lastIndexOf("/") + 1).replace(/:[^:]*$/, "");
  const name = last
    .toLowerCase()
    .replaceAll(/[^a-z0-9-]+/g, "-")
    .slice(0, MAX_NAME_LENGTH)
    .replaceAll(/^-+|-+$/g, "");
  if (/^[a-z0-9]/.test(name)) return name;
  throw usage(`"${image}" gives no name: choose one with --name`);
}

/** Parses a published port: `8080`, `80:8080`, `53:5353/udp`. */
export function parsePublication(text: string): Publication {
  const [, first = "", second = first, protocol = "tcp"] =
    /^(\d{1,5})(?::(\d{1,5}))?(?:\/(tcp|udp|sctp))?$/i.exec(text) ?? [];
  const port = Number(first);
  const target = Number(second);
  if (!isPort(port) || !isPort(target))
    throw usage(`--publish: "${text}" is not [PORT:]CONTAINER_PORT[/udp] such as 80:8080`);
  return { port, target, protocol: protocol.toUpperCase() as Publication["protocol"] };
}

/**
 * Parses a route: `shop.example.com`, `shop.example.com/api`. The coordinator validates the
 * hostname.
 */
export function parseRoute(text: string): RouteTarget {
  const [, hostname, path = "/"] = /^(?:https?:\/\/)?([^/:\s?#]+)(\/[^\s?#]*)?$/.exec(text) ?? [];
  if (hostname === undefined)
    throw usage(`--route: "${text}" is not HOSTNAME[/PATH] such as shop.example.com/api`);
  return { hostname, path };
}

/** Parses a variable: `KEY=VALUE`, or `KEY` for its value in the caller's environment. */
export function parseEnvironment(
  text: string,
  env: Readonly<Record<string, string | undefined>>,
): Environment {
  const split = text.indexOf("=");
  const name = split === -1 ? text : text.slice(0, split);
  if (name === "") throw usage("--env is not KEY=VALUE or KEY");
  if (split !== -1) return { name, source: { value: text.slice(split + 1) } };
  const value = env[name];
  if (value === undefined) throw usage(`--env ${name}: this variable is not set here; write ${name}=VALUE`);
  return { name, source: { value } };
}

/** Parses a reference to an object: `VARIABLE=NAME/KEY` for a variable, `NAME:/PATH` for files. */
export function parseReference(
  kind: "secret" | "config",
  text: string,
): { readonly variable: Environment } | { readonly bind: Bind } {
  const flag = kind === "secret" ? "--secret" : "--config-map";
  const [, variable, name = "", key = ""] = /^([^=:]+)=([^/:]+)\/(.+)$/.exec(text) ?? [];
  if (variable !== undefined) {
    const reference = { [`${kind}_name`]: name, key };
    return { variable: { name: variable, source: { [`${kind}_ref`]: reference } } };
  }
  const [, object, path] = /^([^=:/]+):(\/.*)$/.exec(text) ?? [];
  if (object === undefined || path === undefined)
    throw usage(`${flag}: "${text}" is not VARIABLE=NAME/KEY or NAME:/PATH`);
  const source =
    kind === "secret" ? { secret: { secret_name: object } } : { config_map: { config_map_name: object } };
  return { bind: { source, path, readOnly: true } };
}

/**
 * Parses a volume: `/path` for an empty directory, `CLAIM:/path`, `/host/path:/path`. The suffix
 * `:ro` makes it read-only.
 */
export function parseVolume(text: string): Bind {
  const [, source, path, mode] = /^(?:([^:]+):)?(\/[^:]*)(?::(ro|rw))?$/.exec(text) ?? [];
  if (path === undefined)
    throw usage(`--volume: "${text}" is not [CLAIM:|/HOST/PATH:]/PATH[:ro] such as data:/var/lib/data`);
  const readOnly = mode === "ro";
  if (source === undefined) return { source: { empty_dir: {} }, path, readOnly };
  if (source.startsWith("/")) return { source: { host_path: { path: source } }, path, readOnly };
  return { source: { pvc: { claim_name: source } }, path, readOnly };
}

/**
 * Parses an amount: `500m`, or `500m:1` with a limit. The default limit of memory is its request.
 */
export function parseAmount(flag: "--cpu" | "--memory", text: string): Amount {
  const [request = "", limit, ...rest] = text.split(":");
  if (request === "" || limit === "" || rest.length > 0)
    throw usage(`${flag}: "${text}" is not REQUEST[:LIMIT]`);
  if (limit !== undefined) return { request, limit };
  return flag === "--memory" ? { request, limit: request } : { request, limit: undefined };
}

/** Parses a constraint: `KEY=VALUE`, `KEY!=VALUE`, `KEY` or `!KEY`. */
export function parseConstraint(text: string): Constraint {
  const [, key, operator, value] = /^([^=!\s]+)(!=|=)([^=!\s]+)$/.exec(text) ?? [];
  if (key !== undefined && value !== undefined)
    return { key, operator: operator === "=" ? "In" : "NotIn", values: [value] };
  const [, not, bare] = /^(!?)([^=!\s]+)$/.exec(text) ?? [];
  if (bare !== undefined) return { key: bare, operator: not === "!" ? "DoesNotExist" : "Exists", values: [] };
  throw usage(`--constraint: "${text}" is not KEY=VALUE, KEY!=VALUE, KEY or !KEY`);
}

/** The most replicas, the same as the coordinator's limit. */
const MAX_REPLICAS = 10_000;

/** Parses a number of replicas. Throws USAGE if it is invalid. */
export function parseReplicas(flag: string, text: string): number {
  const number = /^\d{1,5}$/.test(text) ? Number(text) : Number.NaN;
  if (!(number <= MAX_REPLICAS)) throw usage(`${flag}: "${text}" is not a number from 0 to ${MAX_REPLICAS}`);
  return number;
}

function isPort(port: number): boolean {
  return port >= 1 && port <= 65_535;
}

function usage(message: string): CliError {
  return new CliError("USAGE", message);
}
