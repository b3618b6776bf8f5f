import type { IpFamily } from "@forage/common/ip";
import { type AccessTableShape, accessTableText } from "./access-rules.ts";
import { FAMILY_WORDS } from "./family-words.ts";
import { hasIpv6 } from "./kernel-sysctls.ts";
import type { RunCommand } from "./run-command.ts";

export interface AccessTableOptions extends AccessTableShape {
  readonly run: RunCommand;
}

/**
 * The kernel's tables of destinations that pods can reach on this host and beyond, one for each family. They remain
 * when the agent ends.
 */
export class AccessTable {
  readonly #options: AccessTableOptions;
  /**
   * The families of the rules. IPv6 is always included, because links may have IPv6 addresses even if pods have none.
   */
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

  /** Replaces the whole tables atomically. */
  async replace(): Promise<void> {
    for (const family of this.#families)
      await this.#options.run("nft", ["-f", "-"], { input: accessTableText(this.#options, family) });
  }

  /** Restores a table that another program removed. Returns whether one was missing. */
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
