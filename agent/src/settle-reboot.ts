import { readFile } from "node:fs/promises";
import { writePrivateFile } from "@forage/identity/private-file";
import type { Journal } from "./journal/journal.ts";
import { afterReboot } from "./pods/container-memory.ts";
import { fromPodState, toPodState } from "./pods/stored-memory.ts";

export interface RebootOptions {
  readonly journal: Journal;
  /** Changes with every boot of the host. */
  readonly bootId: string;
  /** Where the boot is noted that the journal's states are about. */
  readonly bootIdFile: string;
  readonly nowMs: number;
}

/**
 * True if the host was booted since the states were written. They then say so on disk before anything is started:
 * namespaces and processes of the last boot are gone, and a crash half-way must not take the new ones for the old.
 */
export async function settleReboot({ journal, bootId, bootIdFile, nowMs }: RebootOptions): Promise<boolean> {
  const before = await readFile(bootIdFile, "utf8").catch(() => "");
  if (before === bootId) return false;
  const states = [...journal.states()];
  const rebooted = states.map(([uid, state]) => [uid, afterReboot(fromPodState(uid, state), nowMs)] as const);
  await Promise.all(rebooted.map(([uid, memory]) => journal.saveState(uid, toPodState(memory))));
  await writePrivateFile(bootIdFile, bootId);
  return before !== "";
}
