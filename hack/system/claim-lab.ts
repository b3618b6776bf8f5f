import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { Lab } from "../lab-hosts/lab.ts";
import { labPaths } from "../lab-hosts/lab-state.ts";
import { identify, isAlive, type ProcessIdentity } from "../lib/process-identity.ts";
import { SetupError } from "../lib/setup-error.ts";

/**
 * Takes the name of a lab for this process, after removing one that a dead process has left, and returns the function that
 * removes the lab and gives the name back.
 */
export async function claimLab(name: string): Promise<() => Promise<void>> {
  const owner = `${labPaths(name).lock}.owner`;
  const holder = readOwner(owner);
  if (holder !== undefined && isAlive(holder))
    throw new SetupError("NOT_READY", `process ${holder.pid} uses the lab ${name}`, "wait for it to end");
  mkdirSync(dirname(owner), { recursive: true });
  writeFileSync(owner, JSON.stringify(identify(process.pid)));
  await Lab.remove(name);
  return async () => {
    await Lab.remove(name);
    rmSync(owner, { force: true });
  };
}

function readOwner(path: string): ProcessIdentity | undefined {
  try {
    return JSON.parse(readFileSync(path, "utf8")) as ProcessIdentity;
  } catch {
    return undefined;
  }
}
