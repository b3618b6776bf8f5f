import { isIPv4, isIPv6 } from "node:net";
import { CoordinatorError } from "../errors.ts";

/** A service and one of its ports, as in a look-up. */
export interface ServicePath {
  readonly type: "service";
  readonly namespace: string;
  readonly service: string;
  /** The hostname of one pod of a headless service; empty for the service as a whole. */
  readonly hostname: string;
  readonly port: number;
}

/** The original destination of a connection. */
export interface AddressPath {
  readonly type: "address";
  readonly ip: string;
  readonly port: number;
}

/**
 * The length limit of a path: a DNS name with a trailing dot, a colon and a port. Addresses are
 * shorter.
 */
const MAX_PATH_LENGTH = 253 + 1 + ":65535".length;
/** The length limit of DNS names. */
const MAX_NAME_LENGTH = 253;

/** The default port of Linkerd for a path without a port. */
const DEFAULT_PORT = 80;
const LABEL = "[a-z0-9](?:[-a-z0-9]*[a-z0-9])?";
const NAMES = new RegExp(`^(?:(${LABEL})\\.)?(${LABEL})\\.(${LABEL})$`);

/**
 * Parses `[hostname.]svc.ns.svc.<domain>[:port]`. Throws INVALID for a name that can't be a
 * service's. A proxy then continues without discovery and does not retry.
 */
export function parseServicePath(path: string, domain: string): ServicePath {
  assertLength(path);
  const [, host = "", digits] = /^([^:]*)(?::(.*))?$/.exec(path) ?? [];
  if (host === "") throw invalid(path, "it names no host");
  const port = digits === undefined ? DEFAULT_PORT : portOf(digits, path);
  const suffix = `.svc.${domain}`;
  const name = host.toLowerCase().replace(/\.$/, "");
  if (name.length > MAX_NAME_LENGTH)
    throw invalid(path, `the host must have at most ${MAX_NAME_LENGTH} characters`);
  if (!name.endsWith(suffix)) throw invalid(path, `the host must end in ${suffix}`);
  const match = NAMES.exec(name.slice(0, -suffix.length));
  if (match === null) throw invalid(path, `the host must be [<pod>.]<service>.<namespace>${suffix}`);
  const [, hostname = "", service = "", namespace = ""] = match;
  return { type: "service", service, namespace, hostname, port };
}

/**
 * Parses a path. Also accepts `ip:port` and `[ip]:port`, with which proxies look up the original
 * destination of a connection.
 */
export function parseProfilePath(path: string, domain: string): ServicePath | AddressPath {
  assertLength(path);
  const [, bracketed, plain, digits] = /^(?:\[([^\]]*)\]|([^:]*))(?::(.*))?$/.exec(path) ?? [];
  const ip = bracketed ?? plain ?? "";
  const isAddress = bracketed === undefined ? isIPv4(ip) : isIPv6(ip);
  if (!isAddress) return parseServicePath(path, domain);
  return { type: "address", ip, port: digits === undefined ? DEFAULT_PORT : portOf(digits, path) };
}

/**
 * Throws INVALID for a long path. This check comes first: matching long strings is slow, and paths
 * that become keys stay in memory.
 */
function assertLength(path: string): void {
  if (path.length > MAX_PATH_LENGTH)
    throw invalid(path, `it must have at most ${MAX_PATH_LENGTH} characters`);
}

function portOf(digits: string, path: string): number {
  const port = /^\d{1,5}$/.test(digits) ? Number(digits) : Number.NaN;
  if (!(port >= 1 && port <= 65_535)) throw invalid(path, "the port must be a number from 1 to 65535");
  return port;
}

function invalid(path: string, why: string): CoordinatorError {
  return new CoordinatorError("INVALID", `path "${path.slice(0, 300)}": ${why}`);
}
