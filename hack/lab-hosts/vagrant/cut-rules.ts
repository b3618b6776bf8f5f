/** The nftables table of a guest that is cut off. */
const TABLE = "netdev forage_lab";
/** A priority before all rules of the guest. */
const PRIORITY = -500;

/**
 * Returns an nft script that drops all frames on the interface except those from and to these link-layer addresses. The
 * guest's other interfaces, by which Vagrant reaches it, are not affected.
 */
export function cutRules(device: string, peers: readonly string[]): string {
  const list = peers.join(", ");
  const chain = (name: string, hook: string, rules: readonly string[]): string =>
    [
      `  chain ${name} {`,
      `    type filter hook ${hook} device "${device}" priority ${PRIORITY}; policy drop;`,
      ...rules.map((rule) => `    ${rule}`),
      "  }",
    ].join("\n");
  const ask = "ether daddr ff:ff:ff:ff:ff:ff ether type arp accept";
  const from = peers.length === 0 ? [] : [`ether saddr { ${list} } accept`];
  const to = peers.length === 0 ? [] : [`ether daddr { ${list} } accept`, ask];
  return `${REJOIN_RULES}table ${TABLE} {\n${chain("in", "ingress", from)}\n${chain("out", "egress", to)}\n}\n`;
}

/** An nft script that removes the table. It makes the table first, so it succeeds even if there is none. */
export const REJOIN_RULES = `table ${TABLE}\ndelete table ${TABLE}\n`;
