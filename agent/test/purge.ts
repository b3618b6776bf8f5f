import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { listLinks } from "../src/network/host-links.ts";
import { instanceNames } from "../src/network/instance-names.ts";
import { hasIpv6, isOfBridge, readChangedSysctls } from "../src/network/kernel-sysctls.ts";
import { deleteNamespace, listNamespaces } from "../src/network/network-namespaces.ts";
import type { RunCommand } from "../src/network/run-command.ts";

export interface PurgeOptions {
  readonly instance: string;
  /**
   * The directory of the network's leases and records, which is removed. Undefined: only kernel objects are removed.
   */
  readonly dataDir?: string;
  /** Whether to restore changed sysctls. Off by default, because other programs may depend on forwarding by now. */
  readonly restoreSysctls: boolean;
  readonly run: RunCommand;
}

export interface PurgeReport {
  readonly namespaces: number;
  readonly links: number;
  /** The sysctls that the agent had changed, with their previous values, and whether they were restored. */
  readonly sysctls: readonly { readonly name: string; readonly before: string; readonly restored: boolean }[];
}

/** Removes everything that an instance has created in the kernel and on disk, after its agent has ended for good. */
export async function purge({ instance, dataDir, restoreSysctls, run }: PurgeOptions): Promise<PurgeReport> {
  const { bridge, table, servicesTable, accessTable, namespacePrefix } = instanceNames(instance);
  const links = await listLinks(run);
  // Removes the pods' links first, because a namespace that a process still holds would keep its own.
  const ours = links.filter((link) => link.master === bridge || link.ifname === bridge);
  for (const link of ours.filter((it) => it.ifname !== bridge)) await run("ip", ["link", "del", link.ifname]);
  if (ours.some((link) => link.ifname === bridge)) await run("ip", ["link", "del", bridge]);
  const namespaces = await listNamespaces(namespacePrefix);
  for (const namespace of namespaces) await deleteNamespace(run, namespace);
  // Adding a table first makes deleting succeed even if it doesn't exist.
  const families = (await hasIpv6()) ? ["ip", "ip6"] : ["ip"];
  const tables = families.flatMap((family) =>
    [table, servicesTable, accessTable].map((name) => `${family} ${name}`),
  );
  const input = tables.map((it) => `add table ${it}\ndelete table ${it}\n`).join("");
  await run("nft", ["-f", "-"], { input });
  const changed = dataDir === undefined ? {} : await readChangedSysctls(dataDir);
  const sysctls: PurgeReport["sysctls"][number][] = [];
  for (const [name, before] of Object.entries(changed)) {
    // These belong to the bridge and are already gone.
    if (isOfBridge(name, bridge)) continue;
    // Links may be gone, together with their sysctls.
    const restored = restoreSysctls && (await restore(name, before));
    sysctls.push({ name, before, restored });
  }
  if (dataDir !== undefined) await rm(dataDir, { recursive: true, force: true });
  return { namespaces: namespaces.length, links: ours.length, sysctls };
}

async function restore(name: string, before: string): Promise<boolean> {
  try {
    await writeFile(join("/proc/sys", name), before);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return false;
    throw error;
  }
}
