import { FAMILY_WORDS, type IpFamily } from "./ip-family.ts";
import type { RunCommand } from "./run-command.ts";

/**
 * Tables of the host's firewall that drop forwarded packets unless they were told otherwise, as Docker's does.
 * Nothing in a table of our own can override that; all we can do is tell.
 */
export async function tablesDroppingForwards(
  run: RunCommand,
  families: readonly IpFamily[],
): Promise<string[]> {
  const listed: { nftables?: readonly { chain?: BaseChain }[] } = JSON.parse(
    await run("nft", ["-j", "list", "chains"]),
  );
  const chains = (listed.nftables ?? []).flatMap((entry) => entry.chain ?? []);
  const dropping = chains.filter((chain) => chain.hook === "forward" && chain.policy === "drop");
  const unused: readonly string[] = ([4, 6] as const)
    .filter((family) => !families.includes(family))
    .map((family) => FAMILY_WORDS[family].ip);
  return dropping
    .filter((chain) => !unused.includes(chain.family))
    .map((chain) => `${chain.family} ${chain.table}`);
}

interface BaseChain {
  readonly family: string;
  readonly table: string;
  readonly hook?: string;
  readonly policy?: string;
}
