import { mkdirSync, readdirSync, readFileSync, rmdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { identify, isAlive, type ProcessIdentity } from "../lib/process-identity.ts";
import { SetupError } from "../lib/setup-error.ts";
import { readInstance } from "./instance.ts";
import { isPortFree } from "./port-holder.ts";

/** The owner of a range of ports. */
export interface PortOwner {
  readonly id: string;
  readonly dataDir: string;
}

interface Claim extends PortOwner {
  /** The process that claimed the range. Its instance may not be on disk yet. */
  readonly by: ProcessIdentity | undefined;
}

// Below an installed agent's range (20000-29999), NodePorts and the kernel's own choice of ports, and above port 10080,
// which browsers refuse.
const FIRST_PORT = 10_500;
const LAST_PORT = 19_999;
// The agent's own HTTP port and 499 for pods: 19 instances on one machine.
const PORTS_EACH = 500;
// One file for each range. After a reboot they are gone, but an instance's record still contains its range.
const CLAIMS = "/run/forage-ports";

/** Claims a range of ports that no other instance has, or is about to have. */
export async function claimPorts(owner: PortOwner, dir = CLAIMS): Promise<{ first: number; last: number }> {
  mkdirSync(dir, { recursive: true });
  for (let first = FIRST_PORT; first <= LAST_PORT; first += PORTS_EACH) {
    if (!claim(join(dir, String(first)), owner)) continue;
    if (await isPortFree("127.0.0.1", first)) return { first, last: first + PORTS_EACH - 1 };
    rmSync(join(dir, String(first)), { force: true });
  }
  throw new SetupError(
    "PORT_TAKEN",
    `no free range of ports is left from ${FIRST_PORT} on`,
    "take another instance down",
  );
}

/** Releases the ports of an instance. Idempotent. */
export function releasePorts(id: string, dir = CLAIMS): void {
  for (const name of list(dir)) {
    if (readClaim(join(dir, name))?.id === id) rmSync(join(dir, name), { force: true });
  }
  try {
    rmdirSync(dir);
  } catch {
    // The directory contains claims of others.
  }
}

function claim(path: string, owner: PortOwner): boolean {
  const before = readClaim(path);
  if (before && !isHeld(before)) rmSync(path, { force: true });
  try {
    const content: Claim = { id: owner.id, dataDir: owner.dataDir, by: identify(process.pid) };
    writeFileSync(path, JSON.stringify(content), { flag: "wx", mode: 0o600 });
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
    throw error;
  }
}

function isHeld({ id, dataDir, by }: Claim): boolean {
  return readInstance(dataDir)?.id === id || (by !== undefined && isAlive(by));
}

function readClaim(path: string): Claim | undefined {
  try {
    return JSON.parse(readFileSync(path, "utf8")) as Claim;
  } catch {
    return undefined;
  }
}

function list(dir: string): string[] {
  try {
    return readdirSync(dir);
  } catch {
    return [];
  }
}
