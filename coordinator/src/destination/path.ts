import { CoordinatorError } from "../errors.ts";

/** A service and one of its ports, as a look-up names them. */
export interface ServicePath {
  readonly namespace: string;
  readonly service: string;
  readonly port: number;
}

/** Linkerd's own default when a path names no port. */
const defaultPort = 80;
const label = "[a-z0-9](?:[-a-z0-9]*[a-z0-9])?";

/**
 * Parses `svc.ns.svc.<domain>[:port]`. What can't be a service's name is INVALID, which makes a proxy go on without
 * discovery; asking again would not help.
 */
export function parseServicePath(path: string, domain: string): ServicePath {
  const [, host = "", digits] = /^([^:]*)(?::(.*))?$/.exec(path) ?? [];
  if (host === "") throw invalid(path, "it names no host");
  const port = digits === undefined ? defaultPort : Number(/^\d{1,5}$/.test(digits) ? digits : Number.NaN);
  if (!(port >= 1 && port <= 65_535)) throw invalid(path, "the port must be a number from 1 to 65535");
  const suffix = `.svc.${domain}`;
  const name = host.toLowerCase().replace(/\.$/, "");
  if (!name.endsWith(suffix)) throw invalid(path, `the host must end in ${suffix}`);
  const match = new RegExp(`^(${label})\\.(${label})$`).exec(name.slice(0, -suffix.length));
  if (match === null) throw invalid(path, `the host must be <service>.<namespace>${suffix}`);
  return { service: match[1] ?? "", namespace: match[2] ?? "", port };
}

function invalid(path: string, why: string): CoordinatorError {
  return new CoordinatorError("INVALID", `path "${path.slice(0, 300)}": ${why}`);
}
