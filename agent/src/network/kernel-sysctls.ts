import { access, readdir, readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";

/** Maps a sysctl such as `net/ipv4/ip_forward` to its previous value. */
export type ChangedSysctls = Readonly<Record<string, string>>;

const RECORD_FILE = "sysctls.json";
const PROC_SYS = "/proc/sys";

/** Enables forwarding between pods and other networks. */
export const IP_FORWARD = "net/ipv4/ip_forward";

export const IPV6_FORWARD = "net/ipv6/conf/all/forwarding";

/** Returns the sysctl that lets responses to packets from 127.0.0.1 return from the bridge. */
export function routeLocalnet(bridge: string): string {
  return `net/ipv4/conf/${bridge}/route_localnet`;
}

/** Reports whether the sysctl belongs to the bridge and therefore disappears with it. */
export function isOfBridge(name: string, bridge: string): boolean {
  return name.includes(`/conf/${bridge}/`);
}

/** Reports whether the kernel supports IPv6. */
export async function hasIpv6(): Promise<boolean> {
  return access(join(PROC_SYS, IPV6_FORWARD)).then(
    () => true,
    () => false,
  );
}

/**
 * Returns the values that make the host ignore routers among the pods. The host is their router and must not accept
 * routes from them, with or without IPv6 for pods.
 */
export async function sysctlsAgainstRouters(bridge: string): Promise<ChangedSysctls> {
  return (await hasIpv6()) ? { [`net/ipv6/conf/${bridge}/accept_ra`]: "0" } : {};
}

/** Returns the values that enable forwarding of pods' IPv6 packets. */
export async function sysctlsForIpv6(dataDir: string, bridge: string): Promise<ChangedSysctls> {
  return {
    // Without this setting, a bridge that is briefly down loses its IPv6 address, although it keeps its IPv4 address.
    [`net/ipv6/conf/${bridge}/keep_addr_on_down`]: "1",
    ...(await keptAdvertisements(dataDir, bridge)),
    [IPV6_FORWARD]: "1",
  };
}

/**
 * Returns the values that keep router advertisements enabled. A host that forwards ignores them by default, although
 * many hosts get their address and default route from them. Does not apply if the host was forwarding before.
 */
async function keptAdvertisements(dataDir: string, bridge: string): Promise<ChangedSysctls> {
  const conf = join(PROC_SYS, "net/ipv6/conf");
  const forwards = (await readFile(join(PROC_SYS, IPV6_FORWARD), "utf8")).trim() !== "0";
  const before = (await readChangedSysctls(dataDir))[IPV6_FORWARD];
  if (forwards && before !== "0") return {};
  const links = (await readdir(conf)).filter((name) => !["all", "default", "lo", bridge].includes(name));
  const kept: Record<string, string> = {};
  for (const link of links) {
    // Ports of bridges have no addresses of their own.
    const isPort = await access(`/sys/class/net/${link}/master`).then(
      () => true,
      () => false,
    );
    const name = `net/ipv6/conf/${link}/accept_ra`;
    const value = await readFile(join(PROC_SYS, name), "utf8").catch(() => "");
    if (!isPort && value.trim() === "1") kept[name] = "2";
  }
  return kept;
}

/**
 * Sets the values that differ, and returns their names. Stores the values from before the first change in `dataDir`, so
 * that an operator can see the changes.
 */
export async function setSysctls(dataDir: string, desired: ChangedSysctls): Promise<string[]> {
  const changed: Record<string, string> = {};
  for (const [name, value] of Object.entries(desired)) {
    const present = (await readFile(join(PROC_SYS, name), "utf8")).trim();
    if (present === value) continue;
    await writeFile(join(PROC_SYS, name), value);
    changed[name] = present;
  }
  if (Object.keys(changed).length > 0)
    await record(dataDir, { ...changed, ...(await readChangedSysctls(dataDir)) });
  return Object.keys(changed);
}

/** Reads the sysctls changed on this host, with their previous values. Empty if there is no record. */
export async function readChangedSysctls(dataDir: string): Promise<ChangedSysctls> {
  try {
    const read: unknown = JSON.parse(await readFile(join(dataDir, RECORD_FILE), "utf8"));
    return typeof read === "object" && read !== null ? { ...read } : {};
  } catch {
    return {};
  }
}

async function record(dataDir: string, changed: ChangedSysctls): Promise<void> {
  const path = join(dataDir, RECORD_FILE);
  await writeFile(`${path}.tmp`, JSON.stringify(changed), { mode: 0o600 });
  await rename(`${path}.tmp`, path);
}
