import type { IpFamily } from "@forage/common/ip";
import { FAMILY_WORDS } from "./family-words.ts";
import type { RunCommand } from "./run-command.ts";

/**
 * Returns the tables of the host's firewall that drop forwarded packets by default, as Docker's does. The agent's own
 * table can't override that, so it is only reported.
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
