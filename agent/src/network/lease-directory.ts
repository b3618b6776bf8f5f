import { mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { isIP } from "node:net";
import { join } from "node:path";

/**
 * The leases of the host-local plugin: one file per address, which contains the container id (here the namespace's
 * name) and the interface on separate lines. Leases survive a reboot; namespaces don't.
 */
export class LeaseDirectory {
  readonly #dir: string;

  constructor(leaseDir: string, cniNetwork: string) {
    this.#dir = join(leaseDir, cniNetwork);
  }

  async holder(address: string): Promise<string | undefined> {
    return (await this.read(address))?.holder;
  }

  /** Returns the namespace and the interface that hold the address. Undefined if there is no such lease. */
  async read(
    address: string,
  ): Promise<
    { readonly holder: string | undefined; readonly interfaceName: string | undefined } | undefined
  > {
    if (isIP(address) === 0) return undefined;
    try {
      const [holder, interfaceName] = (await readFile(join(this.#dir, address), "utf8")).split(/\r?\n/);
      return { holder, interfaceName };
    } catch {
      return undefined;
    }
  }

  pathOf(address: string): string {
    return join(this.#dir, address);
  }

  /** Writes the lease in the plugin's format. */
  async write(address: string, holder: string, interfaceName: string): Promise<void> {
    if (isIP(address) === 0) throw new RangeError(`${JSON.stringify(address)} is not an address`);
    await mkdir(this.#dir, { recursive: true });
    await writeFile(this.pathOf(address), `${holder}\r\n${interfaceName}`, { mode: 0o644 });
  }

  /** Releases all leases except those of the given holders. Only safe while no plugin is running. */
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
