import { lookup } from "node:dns/promises";
import { BlockList, isIP, isIPv6 } from "node:net";
import { networkInterfaces } from "node:os";
import { METADATA_ADDRESSES } from "../../network/access-rules.ts";
import { WorkspaceError } from "../workspace-error.ts";

/** Returns the reason why initializers must not connect to an address, or undefined if they may. */
export type RefuseAddress = (address: string) => string | undefined;

const SUBNETS: readonly (readonly [string, number, "ipv4" | "ipv6", string])[] = [
  ["0.0.0.0", 8, "ipv4", "belongs to this host"],
  ["127.0.0.0", 8, "ipv4", "belongs to this host"],
  ["169.254.0.0", 16, "ipv4", "is link-local"],
  ["224.0.0.0", 3, "ipv4", "is not the address of a server"],
  ["::", 127, "ipv6", "belongs to this host"],
  ["fe80::", 10, "ipv6", "is link-local"],
  ["ff00::", 8, "ipv6", "is not the address of a server"],
];

/**
 * Returns the rule for addresses of initializers. They run on the host, where the rules for pods don't apply, and must
 * reach neither the host itself nor its cloud's metadata service.
 */
export function refuseHostAddresses(): RefuseAddress {
  const rules = SUBNETS.map(([network, prefix, family, reason]) => {
    const list = new BlockList();
    list.addSubnet(network, prefix, family);
    return { list, reason };
  });
  const metadata = new BlockList();
  for (const address of METADATA_ADDRESSES[4]) metadata.addAddress(address, "ipv4");
  for (const address of METADATA_ADDRESSES[6]) metadata.addAddress(address, "ipv6");
  return (address) => {
    const family = isIPv6(address) ? "ipv6" : "ipv4";
    if (metadata.check(address, family)) return "is a cloud's metadata service";
    const found = rules.find(({ list }) => list.check(address, family));
    return found?.reason ?? (isOwn(address) ? "belongs to this host" : undefined);
  };
}

/**
 * Returns an address of the host that initializers may connect to. The caller connects to this address and not to the
 * name, which may resolve differently later. @throws WorkspaceError FAILED if there is none, UNAVAILABLE if the name
 * can't be resolved now.
 */
export async function reachableAddress(host: string, refuse: RefuseAddress): Promise<string> {
  const name = host.replace(/^\[(.*)\]$/, "$1");
  const addresses = isIP(name) > 0 ? [name] : await resolve(name);
  const allowed = addresses.find((address) => refuse(address) === undefined);
  if (allowed !== undefined) return allowed;
  const [first = ""] = addresses;
  throw new WorkspaceError("FAILED", `${host} is not reachable for initializers: ${first} ${refuse(first)}`);
}

async function resolve(name: string): Promise<readonly string[]> {
  try {
    return (await lookup(name, { all: true })).map(({ address }) => address);
  } catch (cause) {
    throw new WorkspaceError("UNAVAILABLE", `${name} can't be resolved`, { cause });
  }
}

function isOwn(address: string): boolean {
  const own = Object.values(networkInterfaces()).flatMap((it) => it ?? []);
  return own.some((it) => it.address === address);
}
