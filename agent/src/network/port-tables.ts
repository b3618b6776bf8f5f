import { familyOf } from "@forage/common/ip";
import { addressesOf, type PodSandbox, type PortMapping } from "./network.ts";
import { PortTable, type PortTableOptions } from "./port-table.ts";

/** The addresses of a pod, one for each family. */
type Addresses = Pick<PodSandbox, "address" | "address6">;

export interface PortTablesOptions extends Omit<PortTableOptions, "podCidr"> {
  /** One CIDR for each family in which pods have addresses. */
  readonly podCidrs: readonly string[];
}

/** The kernel's tables of host ports. A host port forwards to its pod in each family that the pod has. */
export class PortTables {
  readonly #tables: readonly (readonly [family: 4 | 6, table: PortTable])[];

  constructor({ podCidrs, ...options }: PortTablesOptions) {
    this.#tables = podCidrs.map((podCidr) => [familyOf(podCidr), new PortTable({ ...options, podCidr })]);
  }

  /** Adds mappings to the content of the first replacement. */
  preset(podUid: string, addresses: Addresses, mappings: readonly PortMapping[]): void {
    for (const [table, address] of this.#matching(addresses)) table.preset(podUid, address, mappings);
  }

  /** Replaces the whole tables atomically. */
  async replace(): Promise<void> {
    await this.#each((table) => table.replace());
  }

  async set(podUid: string, addresses: Addresses, mappings: readonly PortMapping[]): Promise<void> {
    await Promise.all(
      this.#matching(addresses).map(([table, address]) => table.set(podUid, address, mappings)),
    );
  }

  async delete(podUid: string): Promise<void> {
    await this.#each((table) => table.delete(podUid));
  }

  /** Restores tables that another program removed. Returns whether any was missing. */
  async repair(): Promise<boolean> {
    return (await this.#each((table) => table.repair())).includes(true);
  }

  async settle(): Promise<void> {
    await this.#each((table) => table.settle());
  }

  #each<Result>(run: (table: PortTable) => Promise<Result>): Promise<Result[]> {
    return Promise.all(this.#tables.map(([, table]) => run(table)));
  }

  #matching(addresses: Addresses): (readonly [PortTable, string])[] {
    return this.#tables.flatMap(([family, table]) => {
      const address = addressesOf(addresses).find((it) => familyOf(it) === family);
      return address === undefined ? [] : [[table, address] as const];
    });
  }
}
