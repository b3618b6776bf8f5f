import { access, readdir, readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";

/** `net/ipv4/ip_forward` and the value it had before. */
export type ChangedSysctls = Readonly<Record<string, string>>;

const RECORD_FILE = "sysctls.json";
const PROC_SYS = "/proc/sys";

/** Forwarding between pods and the world. */
export const IP_FORWARD = "net/ipv4/ip_forward";

export const IPV6_FORWARD = "net/ipv6/conf/all/forwarding";

/** Lets answers to what came from 127.0.0.1 find their way back from the bridge. */
export function routeLocalnet(bridge: string): string {
  return `net/ipv4/conf/${bridge}/route_localnet`;
}

/** The bridge's own go when it goes. */
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

/** The host is the pods' router, and takes none of their words for where to send what, whether they have addresses of IPv6 or not. */
export async function sysctlsAgainstRouters(bridge: string): Promise<ChangedSysctls> {
  return (await hasIpv6()) ? { [`net/ipv6/conf/${bridge}/accept_ra`]: "0" } : {};
}

/** Forwarding of pods' packets. */
export async function sysctlsForIpv6(dataDir: string, bridge: string): Promise<ChangedSysctls> {
  return {
    // Else a bridge that is down for a moment loses its address, which one of IPv4 keeps.
    [`net/ipv6/conf/${bridge}/keep_addr_on_down`]: "1",
    ...(await keptAdvertisements(dataDir, bridge)),
    [IPV6_FORWARD]: "1",
  };
}

/**
 * A host that forwards no longer listens to routers, by which many have their address and default route: those of its
 * links that did go on doing so, unless it has forwarded before us.
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
 * Sets what differs; what the host had before the first change is kept in `dataDir`, so that an operator can
 * tell what became of the host. Gives the names that were changed now.
 */
export async function setSysctls(dataDir: string, wanted: ChangedSysctls): Promise<string[]> {
  const changed: Record<string, string> = {};
  for (const [name, value] of Object.entries(wanted)) {
    const present = (await readFile(join(PROC_SYS, name), "utf8")).trim();
    if (present === value) continue;
    await writeFile(join(PROC_SYS, name), value);
    changed[name] = present;
  }
  if (Object.keys(changed).length > 0)
    await record(dataDir, { ...changed, ...(await readChangedSysctls(dataDir)) });
  return Object.keys(changed);
}

/** Reads the changes made on this host, with the previous values. Empty if nothing is known. */
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
