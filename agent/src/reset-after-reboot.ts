import { readFile } from "node:fs/promises";
import { crc32 } from "node:zlib";
import { writePrivateFile } from "@forage/identity/private-file";
import type { NoteDamage } from "./damage-reports.ts";
import type { Journal } from "./journal/journal.ts";
import { afterReboot } from "./pods/container-memory.ts";
import { fromPodState, toPodState } from "./pods/stored-memory.ts";

export interface RebootOptions {
  readonly journal: Journal;
  /** Changes with every boot of the host. */
  readonly bootId: string;
  /** The file with the boot id to which the journal's states belong. */
  readonly bootIdFile: string;
  readonly nowMs: number;
  readonly noteDamage: NoteDamage;
}

/**
 * Returns true if the host has rebooted since the states were written. The states then record this on disk before any container
 * starts, because namespaces and processes of the last boot are gone, and after a crash half-way new ones must not count as old.
 * If the note can't be read, the kernel and containerd show what is left of each pod.
 */
export async function resetAfterReboot(options: RebootOptions): Promise<boolean> {
  const { journal, bootId, bootIdFile, nowMs, noteDamage } = options;
  const before = await readBootId(bootIdFile);
  if (before === bootId) return false;
  const states = [...journal.states()];
  if (before === undefined) {
    if (states.length > 0) {
      noteDamage(
        bootIdFile,
        "it is missing or damaged",
        "the host counts as not rebooted, and pods as they are found",
      );
    }
    await writePrivateFile(bootIdFile, encodeBootId(bootId));
    return false;
  }
  const rebooted = states.map(([uid, state]) => [uid, afterReboot(fromPodState(uid, state), nowMs)] as const);
  await Promise.all(rebooted.map(([uid, memory]) => journal.saveState(uid, toPodState(memory))));
  await writePrivateFile(bootIdFile, encodeBootId(bootId));
  return true;
}

/** With a checksum: another boot's id means that everything of a pod is gone, so a damaged one must not pass for it. */
export function encodeBootId(bootId: string): string {
  return `${bootId} ${crc32(bootId).toString(16).padStart(8, "0")}`;
}

/** Undefined: there is none that can be read. */
async function readBootId(path: string): Promise<string | undefined> {
  const text = await readFile(path, "utf8").catch(() => "");
  // As older agents wrote it.
  if (/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(text)) return text;
  const bootId = text.slice(0, text.lastIndexOf(" "));
  return text === encodeBootId(bootId) ? bootId : undefined;
}
