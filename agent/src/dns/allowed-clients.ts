import { BlockList, isIPv6 } from "node:net";

/**
 * Returns a function that decides who may use the pods' name server: pods of this host, and the host itself by any of
 * its addresses. Neighbours on the host's networks could otherwise reach the bridge's address by a route of their own.
 */
export function allowedClients(
  podCidrs: readonly string[],
  hostAddresses: () => readonly string[],
): (address: string) => boolean {
  const pods = new BlockList();
  for (const cidr of podCidrs) {
    const [network = "", prefix] = cidr.split("/");
    pods.addSubnet(network, Number(prefix), familyOf(network));
  }
  pods.addSubnet("127.0.0.0", 8, "ipv4");
  pods.addAddress("::1", "ipv6");
  return (asker) => {
    const [address = ""] = asker.split("%");
    // Interfaces change at any time, so the host's addresses are looked up for each query that doesn't come from a pod.
    return pods.check(address, familyOf(address)) || hostAddresses().includes(address);
  };
}

function familyOf(address: string): "ipv4" | "ipv6" {
  return isIPv6(address) ? "ipv6" : "ipv4";
}
