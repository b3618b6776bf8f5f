import { readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { run } from "./run.ts";
import { SetupError } from "./setup-error.ts";

// Instance names are short and random. An even shorter one might be part of another name.
const MIN_INSTANCE_LENGTH = 5;
const NAMED_NAMESPACES = "/run/netns";
// The default directories of host-local's leases and libcni's results.
const CNI_PLACES = ["/var/lib/cni/networks", "/var/lib/cni/results", "/var/lib/cni"];

/** The objects of an instance in the kernel and in CNI's directories, found by the instance's name. */
export interface NetworkRemains {
  readonly namespaces: readonly string[];
  readonly links: readonly string[];
  /** The tables as [family, name]. */
  readonly tables: readonly (readonly [string, string])[];
  readonly leases: readonly string[];
}

export async function findNetworkRemains(instance: string): Promise<NetworkRemains> {
  if (instance.length < MIN_INSTANCE_LENGTH) {
    throw new SetupError(
      "BAD_USAGE",
      `the instance name ${JSON.stringify(instance)} is too short`,
      "use five characters or more",
    );
  }
  const isOurs = (name: string): boolean => name.includes(instance);
  return {
    namespaces: list(NAMED_NAMESPACES).filter(isOurs),
    links: (await listLinks()).filter(isOurs),
    tables: (await listTables()).filter(([, name]) => isOurs(name)),
    leases: CNI_PLACES.flatMap((dir) =>
      list(dir)
        .filter(isOurs)
        .map((name) => join(dir, name)),
    ),
  };
}

/** Removes everything that `findNetworkRemains` finds. Idempotent. */
export async function removeNetworkRemains(instance: string): Promise<void> {
  const remains = await findNetworkRemains(instance);
  for (const namespace of remains.namespaces) {
    await run("ip", ["netns", "delete", namespace], { allowFailure: true });
  }
  for (const [family, name] of remains.tables) {
    await run("nft", ["delete", "table", family, name], { allowFailure: true });
  }
  for (const link of remains.links) {
    await run("ip", ["link", "delete", "dev", link], { allowFailure: true });
  }
  for (const path of remains.leases) rmSync(path, { recursive: true, force: true });
}

async function listLinks(): Promise<string[]> {
  const { stdout } = await run("ip", ["-json", "link", "show"], { allowFailure: true });
  return (JSON.parse(stdout || "[]") as { ifname?: string }[]).flatMap((link) => link.ifname ?? []);
}

async function listTables(): Promise<[string, string][]> {
  const { stdout } = await run("nft", ["list", "tables"], { allowFailure: true });
  return [...stdout.matchAll(/^table (\S+) (\S+)$/gm)].map(([, family = "", name = ""]) => [family, name]);
}

function list(dir: string): string[] {
  try {
    return readdirSync(dir);
  } catch {
    return [];
  }
}
