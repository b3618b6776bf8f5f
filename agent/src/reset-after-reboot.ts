import { basename, dirname } from "node:path";
import { crc32 } from "node:zlib";
import { messageOf } from "@forage/common/message-of";
import type { Clock } from "./clock.ts";
import type { NoteDamage } from "./damage-reports.ts";
import type { Journal } from "./journal/journal.ts";
import { hostFiles, type JournalFiles } from "./journal/journal-files.ts";
import { afterReboot } from "./pods/container-memory.ts";
import { retryUntilDone } from "./pods/retry-until-done.ts";
import { fromPodState, toPodState } from "./pods/stored-memory.ts";

export interface RebootOptions {
  readonly journal: Journal;
  /** Default: the host's disk. */
  readonly files?: JournalFiles;
  /** An id that changes with every boot of the host. */
  readonly bootId: string;
  /** The file with the boot id to which the journal's states belong. */
  readonly bootIdFile: string;
  /**
   * A file in a directory that a reboot empties. It names the pods whose states on disk are still from an earlier boot.
   */
  readonly pendingFile: string;
  readonly nowMs: number;
  readonly noteDamage: NoteDamage;
}

export interface RebootOutcome {
  readonly rebooted: boolean;
  /** The disk could not be written. `write` rejects until everything is on disk. Undefined: everything is. */
  readonly unwritten?: { readonly error: unknown; readonly write: () => Promise<void> };
}

/**
 * Resets the states of pods if the host was rebooted since they were written, because namespaces and processes of the
 * previous boot are gone. The states are written before anything is started; otherwise an agent that ends half-way
 * would mistake new containers for old ones. On a full disk the states are reset in memory only, and `unwritten` writes
 * them later. Until then an agent that starts in the same boot resets only the states that are not on disk. If the boot
 * id can't be read, nothing is reset, and the kernel and containerd show what is left of each pod.
 */
export async function resetAfterReboot(options: RebootOptions): Promise<RebootOutcome> {
  const { journal, files = hostFiles, bootId, bootIdFile, nowMs, noteDamage } = options;
  const before = await readBootId(files, bootIdFile);
  if (before === bootId) return { rebooted: false };
  const states = [...journal.states()];
  if (before === undefined) {
    if (states.length > 0) {
      noteDamage(
        bootIdFile,
        "it is missing or damaged",
        "the host is assumed not to have rebooted, and pods are taken over as they are",
      );
    }
    return { rebooted: false, ...(await written(new Set(), options)) };
  }
  const earlier = await readPending(options);
  const stale = states.filter(([uid]) => earlier === undefined || earlier.has(uid));
  const rebooted = stale.map(([uid, state]) => [uid, afterReboot(fromPodState(uid, state), nowMs)] as const);
  // The journal keeps the states in memory at once, and rejects if they can't be written.
  const saved = await Promise.allSettled(
    rebooted.map(([uid, memory]) => journal.saveState(uid, toPodState(memory))),
  );
  const pending = new Set(
    rebooted.flatMap(([uid], index) => (saved[index]?.status === "fulfilled" ? [] : [uid])),
  );
  return { rebooted: earlier === undefined, ...(await written(pending, options)) };
}

/**
 * Retries the write until everything is on disk or the signal aborts. Calls `impaired` with the problem, and with
 * undefined once there is none.
 */
export async function writeStates(
  unwritten: RebootOutcome["unwritten"],
  clock: Clock,
  signal: AbortSignal,
  impaired: (problem: string | undefined) => void,
): Promise<void> {
  if (unwritten === undefined) return;
  const outcome = (error: unknown): void => impaired(error === undefined ? undefined : messageOf(error));
  await retryUntilDone(unwritten.write, { clock, signal, outcome });
}

/** Writes the rest, and returns a function that continues if that fails. */
async function written(
  pending: Set<string>,
  options: RebootOptions,
): Promise<Pick<RebootOutcome, "unwritten">> {
  const write = () => writeAll(pending, options);
  try {
    await write();
    return {};
  } catch (error) {
    return { unwritten: { error, write } };
  }
}

/** Writes everything. The boot id comes last, because it asserts that all states are from this boot. */
async function writeAll(pending: Set<string>, options: RebootOptions): Promise<void> {
  const { journal, files = hostFiles, bootId, bootIdFile, pendingFile } = options;
  try {
    for (const uid of pending) {
      const state = journal.state(uid);
      if (state !== undefined) await journal.saveState(uid, state);
      pending.delete(uid);
    }
    await write(files, bootIdFile, encodeBootId(bootId));
    await files.remove(pendingFile);
  } catch (error) {
    // Without this file, the next agent of this boot resets all states, and restores running containers from
    // containerd.
    const lines = [encodeBootId(bootId), ...pending];
    await write(files, pendingFile, lines.join("\n")).catch(() => undefined);
    throw error;
  }
}

async function write(files: JournalFiles, path: string, text: string): Promise<void> {
  await files.makeDirectory(dirname(path));
  await files.write(dirname(path), [{ name: basename(path), bytes: Buffer.from(text) }]);
}

/** Returns the text of the file, or an empty text if it can't be read. */
async function read(files: JournalFiles, path: string): Promise<string> {
  return files.read(path).then(String, () => "");
}

/** Reads the pending pods. Undefined: no agent has reset states in this boot. */
async function readPending(options: RebootOptions): Promise<ReadonlySet<string> | undefined> {
  const { files = hostFiles, bootId, pendingFile } = options;
  const [mark, ...uids] = (await read(files, pendingFile)).split("\n");
  return mark === encodeBootId(bootId) ? new Set(uids) : undefined;
}

/**
 * Encodes the boot id with a checksum. A different boot id means that everything of a pod is gone, so a damaged one
 * must not be mistaken for it.
 */
export function encodeBootId(bootId: string): string {
  return `${bootId} ${crc32(bootId).toString(16).padStart(8, "0")}`;
}

/** Reads the boot id. Undefined if there is no readable one. */
async function readBootId(files: JournalFiles, path: string): Promise<string | undefined> {
  const text = await read(files, path);
  // The format of older agents.
  if (/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(text)) return text;
  const bootId = text.slice(0, text.lastIndexOf(" "));
  return text === encodeBootId(bootId) ? bootId : undefined;
}
