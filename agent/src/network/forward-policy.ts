import type { RunCommand } from "./run-command.ts";

/**
 * Tables of the host's firewall that drop forwarded packets unless they were told otherwise, as Docker's does.
 * Nothing in a table of our own can override that; all we can do is tell.
 */
export async function tablesDroppingForwards(run: RunCommand): Promise<string[]> {
  const listed: { nftables?: readonly { chain?: BaseChain }[] } = JSON.parse(
    await run("nft", ["-j", "list", "chains"]),
  );
  const chains = (listed.nftables ?? []).flatMap((entry) => entry.chain ?? []);
  const dropping = chains.filter((chain) => chain.hook === "forward" && chain.policy === "drop");
  return dropping.filter((chain) => chain.family !== "ip6").map((chain) => `${chain.family} ${chain.table}`);
}

interface BaseChain {
  readonly family: string;
  readonly table: string;
  readonly hook?: string;
  readonly policy?: string;
}
