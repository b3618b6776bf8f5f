import { randomBytes } from "node:crypto";
import { containsIp } from "@forage/common/ip";
import type { NoteDamage } from "../damage-reports.ts";
import { type Cni, POD_INTERFACE } from "./cni.ts";
import { listLinks } from "./host-links.ts";
import type { InstanceNames } from "./instance-names.ts";
import type { LeaseDirectory } from "./lease-directory.ts";
import { addressesOf } from "./network.ts";
import { addNamespace, deleteNamespace, isNamespace, listNamespaces } from "./network-namespaces.ts";
import type { PodCidr } from "./pod-cidr.ts";
import type { RunCommand } from "./run-command.ts";
import type { SandboxRecord, SandboxRecords } from "./sandbox-records.ts";

/** A call is mostly CPU time of the plugins, so more concurrent calls would delay all of them. */
const PARALLEL_CALLS = 4;

export interface SandboxMakerOptions {
  readonly names: InstanceNames;
  readonly podCidr: PodCidr;
  readonly cni: Cni;
  readonly leases: LeaseDirectory;
  readonly records: SandboxRecords;
  readonly run: RunCommand;
  readonly noteDamage: NoteDamage;
}

/** Creates, checks and removes namespaces wired by CNI, a few at a time. */
export class SandboxMaker {
  readonly #options: SandboxMakerOptions;
  #running = 0;
  readonly #waiting: (() => void)[] = [];

  constructor(options: SandboxMakerOptions) {
    this.#options = options;
  }

  /** Creates a spare sandbox and its record. If that fails, removes everything it has created. */
  make(): Promise<SandboxRecord> {
    return this.#limited(async () => {
      const { names, cni, records, run } = this.#options;
      // A name is never reused, so that an old record or lease can't match a new namespace.
      const namespace = names.namespacePrefix + randomBytes(5).toString("hex");
      try {
        await addNamespace(run, namespace);
        const record = { namespace, ...(await cni.add(namespace)) };
        await records.write(record);
        return record;
      } catch (error) {
        await this.#removeNow(namespace).catch(() => undefined); // The next start removes the rest; the first error is more useful.
        throw error;
      }
    });
  }

  /** Removes link, lease, namespace and record. Accepts that some no longer exist. */
  remove(namespace: string): Promise<void> {
    return this.#limited(() => this.#removeNow(namespace));
  }

  /**
   * Returns the records whose namespace and link exist according to the kernel. Restores a missing or damaged lease,
   * unless another namespace holds the address.
   */
  async intact(candidates: readonly SandboxRecord[]): Promise<SandboxRecord[]> {
    if (candidates.length === 0) return [];
    const { names, podCidr, run } = this.#options;
    const ports = await listLinks(run, ["master", names.bridge]);
    const linked = new Set(ports.map((link) => link.ifname));
    const intact: SandboxRecord[] = [];
    for (const record of candidates) {
      const { namespace, address, hostInterface } = record;
      if (!containsIp(podCidr, address) || !linked.has(hostInterface)) continue;
      if ((await isNamespace(namespace)) && (await this.#holdsLeases(record))) intact.push(record);
    }
    return intact;
  }

  /**
   * Removes all namespaces, records and leases of this instance that are not in `kept`. Must be called before any is
   * created.
   */
  async removeAllBut(kept: readonly SandboxRecord[], recorded: readonly string[]): Promise<number> {
    const keep = new Set(kept.map((record) => record.namespace));
    const present = await listNamespaces(this.#options.names.namespacePrefix);
    const stale = present.filter((namespace) => !keep.has(namespace));
    await Promise.all(stale.map((namespace) => this.remove(namespace)));
    const unused = recorded.filter((namespace) => !keep.has(namespace));
    await Promise.all(unused.map((namespace) => this.#options.records.remove(namespace)));
    return stale.length + (await this.#options.leases.releaseAllBut(keep));
  }

  /**
   * Repairs the leases of an existing sandbox. Returns false if another existing sandbox holds one of its addresses.
   */
  async #holdsLeases(record: SandboxRecord): Promise<boolean> {
    const { leases, names, noteDamage } = this.#options;
    for (const address of addressesOf(record)) {
      const lease = await leases.read(address);
      const holder = lease?.holder;
      const isHeld = holder === record.namespace;
      // The plugin releases a lease only if the interface matches.
      if (isHeld && lease?.interfaceName === POD_INTERFACE) continue;
      if (!isHeld && holder?.startsWith(names.namespacePrefix) && (await isNamespace(holder))) return false;
      const named = isHeld ? "interface of the namespace" : "namespace that exists";
      const reason = lease === undefined ? "it is missing" : `it names no ${named}`;
      const remedy = `written again for ${record.namespace}, which has the address`;
      noteDamage(leases.pathOf(address), reason, remedy);
      await leases.write(address, record.namespace, POD_INTERFACE);
    }
    return true;
  }

  async #removeNow(namespace: string): Promise<void> {
    await this.#options.cni.remove(namespace);
    await deleteNamespace(this.#options.run, namespace);
    await this.#options.records.remove(namespace);
  }

  async #limited<Result>(run: () => Promise<Result>): Promise<Result> {
    if (this.#running >= PARALLEL_CALLS) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    else this.#running++;
    try {
      return await run();
    } finally {
      const next = this.#waiting.shift();
      if (next === undefined) this.#running--;
      else next();
    }
  }
}
