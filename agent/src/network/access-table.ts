import type { IpFamily } from "@forage/common/ip";
import { type AccessTableShape, accessTableText } from "./access-rules.ts";
import { FAMILY_WORDS } from "./family-words.ts";
import { hasIpv6 } from "./kernel-sysctls.ts";
import type { RunCommand } from "./run-command.ts";

export interface AccessTableOptions extends AccessTableShape {
  readonly run: RunCommand;
}

/** The kernel's tables of what pods reach on this host and beyond, one for each family. They stay when the agent ends. */
export class AccessTable {
  readonly #options: AccessTableOptions;
  /** The families of the rules. IPv6 is included even if pods have no address of it, because links have some by themselves. */
  readonly #families: readonly IpFamily[];

  private constructor(options: AccessTableOptions, families: readonly IpFamily[]) {
    this.#options = options;
    this.#families = families;
  }

  static async open(options: AccessTableOptions): Promise<AccessTable> {
    const table = new AccessTable(options, (await hasIpv6()) ? [4, 6] : [4]);
    await table.replace();
    return table;
  }

  /** Makes the tables again as a whole, with no moment without them. */
  async replace(): Promise<void> {
    for (const family of this.#families)
      await this.#options.run("nft", ["-f", "-"], { input: accessTableText(this.#options, family) });
  }

  /** Puts back a table that another program removed; gives whether one was missing. */
  async repair(): Promise<boolean> {
    const { names, run } = this.#options;
    for (const family of this.#families) {
      const { ip } = FAMILY_WORDS[family];
      const tables = await run("nft", ["list", "tables", ip]);
      if (tables.split("\n").includes(`table ${ip} ${names.accessTable}`)) continue;
      await this.replace();
      return true;
    }
    return false;
  }
}
