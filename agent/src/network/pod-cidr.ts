import { type Cidr, formatIp, parseCidr } from "@forage/common/ip";

/** A network for the pods of one host. */
export interface PodCidr extends Cidr {
  /** The first address after that of the network itself, in the kernel's notation. The bridge has it. */
  readonly gateway: string;
}

/** Reads a network wide enough for pods; throws RangeError otherwise. */
export function parsePodCidr(text: string): PodCidr {
  const cidr = parseCidr(text);
  // Smaller ones leave no room for a bridge, a pod and its replacement.
  if (cidr?.family !== 4 || cidr.prefix < 8 || cidr.prefix > 28) {
    throw new RangeError(`pod CIDR ${JSON.stringify(text)} must be IPv4 with a prefix of /8 to /28`);
  }
  return withGateway(cidr);
}

/** Reads a network of IPv6 wide enough for pods; throws RangeError otherwise. */
export function parsePodCidr6(text: string): PodCidr {
  const cidr = parseCidr(text);
  // The plugin that assigns addresses counts them in turn; smaller networks leave no room for replacements.
  if (cidr?.family !== 6 || cidr.prefix < 48 || cidr.prefix > 120) {
    throw new RangeError(`pod CIDR ${JSON.stringify(text)} must be IPv6 with a prefix of /48 to /120`);
  }
  // Pods leave the host with its own address, which needs theirs to mean nothing to anyone else.
  if (!/^f[cd]/.test(cidr.text)) {
    throw new RangeError(
      `pod CIDR ${JSON.stringify(text)} must be of the private range fc00::/7, as fd64::/64 is`,
    );
  }
  return withGateway(cidr);
}

function withGateway(cidr: Cidr): PodCidr {
  return { ...cidr, gateway: formatIp({ family: cidr.family, value: cidr.first + 1n }) };
}
