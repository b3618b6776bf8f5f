import { type Cidr, formatIp, parseCidr } from "@forage/common/ip";

/** A network for the pods of one host. */
export interface PodCidr extends Cidr {
  /** The bridge's address: the first after the network's own, in the kernel's notation. */
  readonly gateway: string;
}

/** Parses an IPv4 pod network. Throws RangeError if it is malformed or too small or large. */
export function parsePodCidr(text: string): PodCidr {
  const cidr = parseCidr(text);
  // Smaller networks leave no room for a bridge, a pod and its replacement.
  if (cidr?.family !== 4 || cidr.prefix < 8 || cidr.prefix > 28) {
    throw new RangeError(`pod CIDR ${JSON.stringify(text)} must be IPv4 with a prefix of /8 to /28`);
  }
  return withGateway(cidr);
}

/** Parses an IPv6 pod network. Throws RangeError if it is malformed or too small or large. */
export function parsePodCidr6(text: string): PodCidr {
  const cidr = parseCidr(text);
  // The plugin assigns addresses in sequence; smaller networks leave no room for replacements.
  if (cidr?.family !== 6 || cidr.prefix < 48 || cidr.prefix > 120) {
    throw new RangeError(`pod CIDR ${JSON.stringify(text)} must be IPv6 with a prefix of /48 to /120`);
  }
  // Pods reach other networks under the host's address, so their own addresses must be private.
  if (!/^f[cd]/.test(cidr.text)) {
    throw new RangeError(
      `pod CIDR ${JSON.stringify(text)} must be in the private range fc00::/7, such as fd64::/64`,
    );
  }
  return withGateway(cidr);
}

function withGateway(cidr: Cidr): PodCidr {
  return { ...cidr, gateway: formatIp({ family: cidr.family, value: cidr.first + 1n }) };
}
