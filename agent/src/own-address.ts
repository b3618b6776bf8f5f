import { createSocket } from "node:dgram";
import { lookup } from "node:dns/promises";
import { type Cidr, containsIp, familyOf, type IpFamily } from "@forage/common/ip";

// Any port will do to select a route; nothing is sent.
const SOME_PORT = 9;
/** An address of the documentation range, which uses the default route. */
const ANYWHERE = "2001:db8::1";

export interface OwnAddressOptions {
  /**
   * The coordinator's address. The source address of connections to it is most likely the one at which others reach the
   * host.
   */
  readonly coordinator: string;
  /** The operator's setting. Undefined: determined automatically. */
  readonly advertised: string | undefined;
  readonly advertised6: string | undefined;
  /** The IPv6 range of pods. Undefined: pods have no IPv6, and the host's own address is not determined. */
  readonly podCidr6: Cidr | undefined;
}

/**
 * Returns the addresses at which others reach this host: one for each family, the preferred one first. Sends no packet.
 */
export async function ownAddresses(options: OwnAddressOptions): Promise<readonly [string, ...string[]]> {
  const { coordinator, advertised, advertised6, podCidr6 } = options;
  const first =
    advertised ??
    (await addressTowards(coordinator, 4)) ??
    reachable6(await addressTowards(coordinator, 6), podCidr6) ??
    "127.0.0.1";
  const second = advertised6 ?? (podCidr6 && (await found6(coordinator, podCidr6)));
  return second === undefined || first.includes(":") ? [first] : [first, second];
}

async function found6(coordinator: string, podCidr6: Cidr): Promise<string | undefined> {
  const towards = reachable6(await addressTowards(coordinator, 6), podCidr6);
  return towards ?? reachable6(await addressTowards(ANYWHERE, 6), podCidr6);
}

/** Returns the address if other hosts can reach the node at it, else undefined. */
function reachable6(address: string | undefined, podCidr6: Cidr | undefined): string | undefined {
  if (address === undefined || /^(fe[89ab]|::1?$)/.test(address)) return undefined;
  // The kernel selects an address of the pods' bridge if the outgoing link has only a link-local one.
  return podCidr6 !== undefined && containsIp(podCidr6, address) ? undefined : address;
}

async function addressTowards(host: string, family: IpFamily): Promise<string | undefined> {
  try {
    // An IP address is returned unchanged, whatever its family.
    const { address } = await lookup(host, { family });
    if (familyOf(address) !== family) return undefined;
    const socket = createSocket(family === 4 ? "udp4" : "udp6");
    try {
      await new Promise<void>((resolve, reject) => {
        socket.once("error", reject);
        socket.connect(SOME_PORT, address, resolve);
      });
      return socket.address().address;
    } finally {
      socket.close();
    }
  } catch {
    return undefined;
  }
}
