import { readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";

/** `net/ipv4/ip_forward` and the value it had before. */
export type ChangedSysctls = Readonly<Record<string, string>>;

const RECORD_FILE = "sysctls.json";
const PROC_SYS = "/proc/sys";

/** Forwarding between pods and the world. */
export const IP_FORWARD = "net/ipv4/ip_forward";

/** Lets answers to what came from 127.0.0.1 find their way back from the bridge. */
export function routeLocalnet(bridge: string): string {
  return `net/ipv4/conf/${bridge}/route_localnet`;
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

/** What was changed on this host, with the values from before; empty where nothing is known. */
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
