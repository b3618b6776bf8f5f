import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Lab } from "../lab-hosts/lab.ts";
import { LABS } from "../lab-hosts/lab-state.ts";
import { identify, isAlive, type ProcessIdentity } from "../lib/process-identity.ts";

/** A lab of this process. Several processes can each have one at the same time. */
export interface ClaimedLab {
  readonly name: string;
  /** Removes the lab with everything in it. */
  release(): Promise<void>;
}

/** Matches the file of a test's lab, which contains the process that made the lab. */
const OWNER_FILE = /^(?<name>test\d+[a-z]?)\.owner$/;

/**
 * Returns a name for a lab of this process, after removing the labs of dead processes. A process with two labs gives
 * one of their names a letter.
 */
export async function claimLab(letter = ""): Promise<ClaimedLab> {
  for (const name of abandonedLabs()) await removeLab(name);
  const name = `test${process.pid}${letter}`;
  mkdirSync(LABS, { recursive: true });
  writeFileSync(ownerFile(name), JSON.stringify(identify(process.pid)));
  return { name, release: () => removeLab(name) };
}

async function removeLab(name: string): Promise<void> {
  await Lab.remove(name);
  rmSync(ownerFile(name), { force: true });
}

function abandonedLabs(): readonly string[] {
  if (!existsSync(LABS)) return [];
  return readdirSync(LABS)
    .flatMap((file) => OWNER_FILE.exec(file)?.groups?.name ?? [])
    .filter((name) => {
      const owner = readOwner(ownerFile(name));
      return owner === undefined || !isAlive(owner);
    });
}

function ownerFile(name: string): string {
  return join(LABS, `${name}.owner`);
}

/** Returns the owner of a lab; `undefined` if the file is incomplete, as after a crash. */
function readOwner(path: string): ProcessIdentity | undefined {
  try {
    return JSON.parse(readFileSync(path, "utf8")) as ProcessIdentity;
  } catch {
    return undefined;
  }
}
