import { readdir, readFile, rm } from "node:fs/promises";
import { isIP } from "node:net";
import { join } from "node:path";

/**
 * The leases of the host-local plugin: one file per address, holding the container id (for us the namespace's
 * name) and the interface on a line each. They outlive a reboot, the namespaces don't.
 */
export class LeaseDirectory {
  readonly #dir: string;

  constructor(leaseDir: string, cniNetwork: string) {
    this.#dir = join(leaseDir, cniNetwork);
  }

  async holder(address: string): Promise<string | undefined> {
    if (isIP(address) === 0) return undefined;
    try {
      return (await readFile(join(this.#dir, address), "utf8")).split(/\r?\n/)[0];
    } catch {
      return undefined;
    }
  }

  /** Releases every lease whose holder is not to be kept. Only safe while no plugin is running. */
  async releaseAllBut(keep: ReadonlySet<string>): Promise<number> {
    const names = await readdir(this.#dir).catch(() => []);
    let released = 0;
    for (const address of names.filter((name) => isIP(name) !== 0)) {
      const holder = await this.holder(address);
      if (holder !== undefined && keep.has(holder)) continue;
      await rm(join(this.#dir, address), { force: true });
      released++;
    }
    return released;
  }
}
