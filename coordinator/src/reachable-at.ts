import type { NetworkInterfaceInfo } from "node:os";
import type { HostPort } from "./config.ts";

/** The most addresses; further ones only make the list longer. */
const ADDRESSES_MAX = 16;
/** Matches the names of container bridges, which have the same addresses on every host. */
const BRIDGES = /^(fg-|docker|br-|cni|nerdctl|podman|virbr|lxc)/;

/** Returns the addresses of the host at which others may reach it, IPv4 first. */
export function hostAddresses(
  interfaces: Readonly<Record<string, readonly NetworkInterfaceInfo[] | undefined>>,
): string[] {
  const found = Object.entries(interfaces).flatMap(([name, addresses = []]) =>
    BRIDGES.test(name)
      ? []
      : addresses.filter(({ internal, address }) => !internal && !/^fe[89ab]/i.test(address)),
  );
  const ofFamily = (family: string): string[] =>
    found.filter((it) => it.family === family).map(({ address }) => address);
  return [...ofFamily("IPv4"), ...ofFamily("IPv6")].slice(0, ADDRESSES_MAX);
}

export interface ListenedNames {
  /** The host on which the gRPC port listens. */
  readonly listenHost: string;
  /** Further names that the operator has configured. */
  readonly names: readonly string[];
  readonly hostAddresses: readonly string[];
}

/**
 * Returns the names and addresses in the certificate under which hosts reach the coordinator, the
 * preferred one first.
 */
export function reachableNames({ listenHost, names, hostAddresses }: ListenedNames): string[] {
  const host = listenHost.replace(/^\[(.*)\]$/, "$1");
  const own = host === "0.0.0.0" || host === "::" ? hostAddresses : [host];
  return [...new Set([...names, ...own])];
}

/** Returns HOST:PORT for each name that other hosts can use. */
export function reachableAt(names: readonly string[], port: number): string[] {
  return names
    .filter((name) => !/^(127\.|localhost$|::1$)/.test(name))
    .map((name) => (name.includes(":") ? `[${name}]:${port}` : `${name}:${port}`));
}

/**
 * Returns HOST:PORT at which other coordinators reach this one. If it listens on loopback, only
 * coordinators on its own host can reach it.
 */
export function advertisedAt(names: readonly string[], listen: HostPort): string[] {
  const found = reachableAt(names, listen.port);
  return found.length > 0
    ? found
    : [`${listen.host.includes(":") ? `[${listen.host}]` : listen.host}:${listen.port}`];
}
