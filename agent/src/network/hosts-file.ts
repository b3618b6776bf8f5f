const LOCAL = `127.0.0.1	localhost
::1	localhost ip6-localhost ip6-loopback
fe00::0	ip6-localnet
fe00::0	ip6-mcastprefix
fe00::1	ip6-allnodes
fe00::2	ip6-allrouters
`;

/** Returns `/etc/hosts` of a pod with a network of its own, with the entries that Kubernetes writes. */
export function podHosts(hostname: string, podIps: readonly string[]): string {
  const own = podIps.map((ip) => `${ip}	${hostname}\n`).join("");
  return `# Written by Forage at each start of a container.\n${LOCAL}${own}`;
}

/** Returns the hosts file of a pod on the host's network: the host's own entries. */
export function hostsOfHost(text: string): string {
  return `# Copied from the host by Forage at each start of a container.\n${text.trim() === "" ? LOCAL : text}`;
}
