import { isIP } from "node:net";
import { normalIp } from "@forage/common/ip";
import { messageOf } from "@forage/common/message-of";
import { nodeId } from "@forage/identity";
import { parseQuantity, wholeUnitsOf } from "@forage/scheduler";
import * as z from "zod/mini";
import { parsePool } from "./devices/parse-pool.ts";
import { parsePodCidr, parsePodCidr6 } from "./network/pod-cidr.ts";
import type { PortRange } from "./network/port-allocator.ts";
import { readOpenPorts } from "./pod-access-settings.ts";
import { parseRegistries } from "./registries/parse-registries.ts";

/*
 * The forms of single settings. Each accepts the value of the file, and the text of a flag or an environment variable.
 * Each is registered with its form in the usage line.
 */

export interface HostPort {
  readonly host: string;
  readonly port: number;
}

/** The form of a setting in the usage line, such as `HOST:PORT`. A schema without a form is a group of settings. */
export const FORMS = z.registry<{ readonly form: string }>();

// The names that the kernel accepts, without those that could be mistaken for an option.
const INTERFACE = /^[A-Za-z0-9_][A-Za-z0-9_.:@-]{0,14}$/;
const INSTANCE = /^[a-z0-9]{1,8}$/;
const CONTAINERD_NAMESPACE = /^[A-Za-z0-9._-]{1,76}$/;
const IMAGE = /^[a-zA-Z0-9][a-zA-Z0-9._/:@-]{0,499}$/;
const DOMAIN = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?){0,8}$/;
const RUNTIME_CLASS = /^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$/;
// The forms that nerdctl accepts: a program, or the name of a shim.
const OCI_RUNTIME = /^\/[^\s,:"\0]{1,4000}$|^io\.containerd\.[a-z0-9-]+\.v\d+$/;
const RUNTIME_CLASSES_MAX = 64;
// etcd supports no more members, and further coordinators would be useless.
const COORDINATORS_MAX = 9;
const NODE_NAMES_MAX = 16;

/** Parses a number, also from text. */
export function wholeNumber(min: number, max: number, form = "N") {
  const must = `must be a whole number from ${min} to ${max}`;
  const number = z.int(must).check(z.minimum(min, must), z.maximum(max, must));
  const fromText = z.transform((value) =>
    typeof value === "string" && /^\d+$/.test(value) ? Number(value) : value,
  );
  return withForm(form, z.pipe(fromText, number));
}

/**
 * Parses `on` and `off`, also as booleans, because YAML parses a bare `off` as a word and some people write `false`.
 */
export function onOrOff() {
  const fromText = z.transform((value) => (value === "on" ? true : value === "off" ? false : value));
  return withForm("on|off", z.pipe(fromText, z.boolean("must be on or off")));
}

export function oneOf<const Words extends readonly string[]>(words: Words) {
  return withForm(words.join("|"), z.enum(words, `must be one of ${words.join(", ")}`));
}

export function absolutePath(form: string) {
  const must = "must be an absolute path";
  return withForm(form, z.string(must).check(z.startsWith("/", must)));
}

export const instanceName = () => matching("NAME", INSTANCE, "must be 1 to 8 lower-case letters or digits");
export const containerdNamespace = () =>
  matching("NAME", CONTAINERD_NAMESPACE, "must be the name of a namespace");
export const domain = () => matching("DOMAIN", DOMAIN, "must be a domain such as cluster.local");
export const interfaceName = () => matching("NAME", INTERFACE, "must be the name of an interface");
export const imageReference = () => matching("IMAGE", IMAGE, "must be the reference of an image");

/** Parses the node's name, which becomes part of its certificate. */
export const nodeName = () =>
  readBy("NAME", (value) => {
    try {
      return nodeId(typeof value === "string" ? value : "");
    } catch {
      throw new Error("1 to 57 lower-case letters, digits, dots or dashes");
    }
  });

/** Parses a list of node names, or comma-separated text. */
export const nodeNames = () =>
  readBy("NAME,…", (value): readonly string[] => {
    const must = `a list of at most ${NODE_NAMES_MAX} names of nodes`;
    const items: readonly unknown[] | undefined =
      typeof value === "string" ? value.split(",") : Array.isArray(value) ? value : undefined;
    if (items === undefined || items.length > NODE_NAMES_MAX) throw new Error(must);
    try {
      return items.map((name) => nodeId(typeof name === "string" ? name : ""));
    } catch {
      throw new Error(must);
    }
  });

export const hostPort = () => readBy("HOST:PORT", readHostPort);

/** Parses a list, or comma-separated text. */
export const hostPorts = () =>
  readBy("HOST:PORT,…", (value): readonly HostPort[] => {
    const items: readonly unknown[] =
      typeof value === "string" ? value.split(",") : Array.isArray(value) ? value : [];
    if (items.length === 0 || items.length > COORDINATORS_MAX)
      throw new Error(`a list of 1 to ${COORDINATORS_MAX} HOST:PORT`);
    try {
      return items.map(readHostPort);
    } catch {
      throw new Error("a list of HOST:PORT");
    }
  });

/** Parses the address at which the agent serves clients without credentials. Undefined: nowhere. */
export const loopbackOrOff = () =>
  readBy("HOST:PORT|off", (value): HostPort | undefined => {
    if (isOff(value)) return undefined;
    const parsed = readHostPort(value);
    if (parsed.host === "::1" || parsed.host === "localhost" || /^127\./.test(parsed.host)) return parsed;
    throw new Error("a loopback address with a port, or off");
  });

export const portOrOff = () =>
  readBy("PORT|off", (value): number | undefined => {
    if (isOff(value)) return undefined;
    const port = typeof value === "string" && /^\d+$/.test(value) ? Number(value) : value;
    if (typeof port === "number" && Number.isInteger(port) && port >= 1 && port <= 65_535) return port;
    throw new Error("a port from 1 to 65535, or off");
  });

export const socketOrOff = () =>
  readBy("SOCKET|off", (value): string | undefined => {
    if (isOff(value)) return undefined;
    if (typeof value === "string" && value.startsWith("/")) return value;
    throw new Error("an absolute path, or off");
  });

export const portRange = () =>
  readBy("FIRST-LAST", (value): PortRange => {
    const match = typeof value === "string" ? /^(\d{1,5})-(\d{1,5})$/.exec(value) : null;
    const [first, last] = [Number(match?.[1]), Number(match?.[2])];
    if (match && first >= 1 && last <= 65_535 && first <= last) return { first, last };
    throw new Error("FIRST-LAST, two ports");
  });

export const openPorts = () => readBy("PORT[/tcp|udp],…", readOpenPorts);

export const anyAddress = () =>
  readBy("ADDRESS", (value) => {
    if (typeof value === "string" && isIP(value) !== 0) return value;
    throw new Error("an IP address");
  });

export const hostAddress = () =>
  readBy("ADDRESS", (value) => {
    if (typeof value === "string" && isIP(value) === 4) return value;
    if (typeof value === "string" && isReachable6(value)) return normalIp(value);
    throw new Error("an IPv4 address, or an IPv6 address on a host that has no other");
  });

export const hostAddress6 = () =>
  readBy("ADDRESS", (value) => {
    if (typeof value === "string" && isReachable6(value)) return normalIp(value);
    throw new Error("an IPv6 address by which other hosts reach this one, not a link-local one");
  });

export const podCidr = () =>
  readBy("CIDR", (value) => {
    if (typeof value !== "string") throw new Error("an address range such as 10.64.0.0/16");
    parsePodCidr(value);
    return value;
  });

export const podCidr6 = () =>
  readBy("CIDR", (value) => {
    if (typeof value !== "string") throw new Error("an IPv6 address range such as fd64::/64");
    parsePodCidr6(value);
    return value;
  });

/** Parses a map, or text such as `a=b,c=d`. */
export const labels = () => readBy("KEY=VALUE,…", readTextMap);

export const quantities = () =>
  readBy("RESOURCE=QUANTITY,…", (value) => {
    const map = readTextMap(value);
    for (const text of Object.values(map)) parseQuantity(text);
    return map;
  });

export const runtimeClasses = () =>
  readBy("NAME=RUNTIME,…", (value) => {
    const map = readTextMap(value);
    const entries = Object.entries(map);
    const isValid = entries.every(([name, runtime]) => RUNTIME_CLASS.test(name) && OCI_RUNTIME.test(runtime));
    if (isValid && entries.length <= RUNTIME_CLASSES_MAX) return map;
    throw new Error(
      "names, each with an OCI runtime's absolute path or a name such as io.containerd.kata.v2",
    );
  });

export const devices = () => readBy("JSON", parsePool);

export const registries = () => readBy("JSON", parseRegistries);

export const bytes = () =>
  readBy("QUANTITY", (value) => {
    const count = wholeUnitsOf(String(value ?? ""));
    if (count > 0) return count;
    throw new Error("a quantity such as 2Gi");
  });

function withForm<Schema extends z.ZodMiniType>(form: string, schema: Schema): Schema {
  FORMS.add(schema, { form });
  return schema;
}

function matching(form: string, pattern: RegExp, must: string) {
  return withForm(form, z.string(must).check(z.regex(pattern, must)));
}

/** Returns a schema of values that `read` parses. `read` throws an error that describes valid values. */
function readBy<Value>(form: string, read: (value: unknown) => Value) {
  const schema = z.transform((value: unknown, { issues }): Value => {
    try {
      return read(value);
    } catch (error) {
      issues.push({ code: "custom", message: `must be ${messageOf(error)}`, input: value });
      return z.NEVER;
    }
  });
  return withForm(form, schema);
}

function readHostPort(value: unknown): HostPort {
  const match =
    typeof value === "string" ? /^(?:\[([0-9a-fA-F:]+)\]|([^:\s]+)):(\d{1,5})$/.exec(value) : null;
  const port = Number(match?.[3]);
  const host = match?.[1] ?? match?.[2];
  if (host !== undefined && port >= 1 && port <= 65_535) return { host, port };
  throw new Error("HOST:PORT");
}

function readTextMap(value: unknown): Readonly<Record<string, string>> {
  const entries = typeof value === "string" ? pairsOf(value) : Object.entries(value ?? {});
  const texts = entries.map(([key, text]) => [key, typeof text === "number" ? String(text) : text] as const);
  if (typeof value === "object" || typeof value === "string") {
    if (texts.every(([key, text]) => key !== "" && typeof text === "string"))
      return Object.fromEntries(texts);
  }
  throw new Error("names with texts, key=value");
}

function pairsOf(text: string): [string, string][] {
  return text
    .split(",")
    .filter((part) => part.trim() !== "")
    .map((part) => {
      const equals = part.indexOf("=");
      return [part.slice(0, Math.max(0, equals)).trim(), part.slice(equals + 1).trim()];
    });
}

function isOff(value: unknown): boolean {
  return value === "off" || value === false;
}

function isReachable6(text: string): boolean {
  return isIP(text) === 6 && !/%|^(fe[89ab]|::)/i.test(text);
}
