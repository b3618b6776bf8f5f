import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { type Disk, readIfExists, removeTree, writeWhole } from "./disk.ts";
import type { StoreFiles } from "./files.ts";

/** The HEAD file as it was when the links were made, beside them: LevelDB ignores a file of this name. */
const HEAD_COPY = "HEAD";

/** LevelDB's own: the lock must not be touched, the logs are only for reading by people. */
const NOT_KEPT = new Set(["LOCK", "LOG", "LOG.old", HEAD_COPY]);

type Found = "absent" | "linked" | "linked before" | "not linked";

/**
 * The database's files as they were found, for as long as it is being opened and checked. Opening makes LevelDB recover:
 * it writes new files and deletes the old, also those it could make no sense of. When the check then fails, the old
 * ones are put back, so that a refused store is left just as it was found and more can be tried on it.
 *
 * The files are hard links, which cost nothing: LevelDB never writes to a file it found.
 *
 * A process can end at any step. So a directory gets the name of the evidence only when it is complete, and loses that
 * name before any of it is removed. Evidence that an earlier opening left behind counts only while HEAD is what it was
 * at that time: whatever was acknowledged since has changed HEAD, and is not in the evidence.
 */
export class Evidence {
  readonly #disk: Disk;
  readonly #files: StoreFiles;
  readonly #found: Found;

  private constructor(disk: Disk, files: StoreFiles, found: Found) {
    this.#disk = disk;
    this.#files = files;
    this.#found = found;
  }

  static keep(disk: Disk, files: StoreFiles): Evidence {
    finish(disk, files);
    const { database, evidence } = files;
    if (!existsSync(database)) return new Evidence(disk, files, "absent");
    if (isCurrent(files)) return new Evidence(disk, files, "linked before");
    discard(disk, evidence);
    const linked = linkFiles(disk, database, evidence, readIfExists(files.head) ?? NO_HEAD);
    return new Evidence(disk, files, linked ? "linked" : "not linked");
  }

  /** Puts back what an opening left that was cut off: the files it had found. */
  static restore(disk: Disk, files: StoreFiles): void {
    finish(disk, files);
    if (isCurrent(files)) exchange(disk, files);
    else discard(disk, files.evidence);
  }

  /** The store is sound: what LevelDB made of the files is what counts now. */
  discard(): void {
    discard(this.#disk, this.#files.evidence);
  }

  /** The store is refused: its files are again those that were found. The database must be closed. */
  putBack(): void {
    if (this.#found === "not linked") return;
    if (this.#found === "absent") putAway(this.#disk, this.#files.database, ".made");
    else exchange(this.#disk, this.#files);
  }

  /** Someone else is using the files, which therefore stay; only what was made here goes. */
  withdraw(): void {
    if (this.#found === "linked") this.discard();
  }
}

/** A second name for each file of a database, under another directory. False where there are no hard links. */
export function linkFiles(disk: Disk, dir: string, to: string, headCopy?: Buffer): boolean {
  const linking = `${to}.incomplete`;
  removeTree(disk, linking);
  disk.makeDirectory(linking);
  try {
    for (const name of databaseFiles(dir)) disk.link(join(dir, name), join(linking, name));
  } catch (error) {
    if (!isUnsupported(error)) throw error;
    removeTree(disk, linking);
    return false;
  }
  if (headCopy !== undefined) writeWhole(disk, join(linking, HEAD_COPY), headCopy);
  disk.syncDirectory(linking);
  disk.rename(linking, to);
  disk.syncDirectory(dirname(to));
  return true;
}

/** The names of what makes up a database. */
export function databaseFiles(dir: string): string[] {
  return readdirSync(dir).filter((name) => !NOT_KEPT.has(name));
}

const NO_HEAD = Buffer.alloc(0);

/** Reports whether there is evidence, and nothing was acknowledged since it was linked. */
function isCurrent({ evidence, head }: StoreFiles): boolean {
  const copy = join(evidence, HEAD_COPY);
  return existsSync(copy) && readFileSync(copy).equals(readIfExists(head) ?? NO_HEAD);
}

/** The evidence becomes the database. */
function exchange(disk: Disk, { database, evidence }: StoreFiles): void {
  if (existsSync(database)) disk.rename(database, `${database}.refused`);
  disk.rename(evidence, database);
  disk.syncDirectory(dirname(database));
  removeTree(disk, `${database}.refused`);
  disk.unlink(join(database, HEAD_COPY));
}

function discard(disk: Disk, evidence: string): void {
  putAway(disk, evidence, ".discarded");
}

/** Takes the name away before anything is removed, so that no part of it is ever taken for the whole. */
export function putAway(disk: Disk, dir: string, suffix: string): void {
  if (!existsSync(dir)) return;
  const away = `${dir}${suffix}`;
  disk.rename(dir, away);
  // Without it a power failure could bring the name back after newer records were acknowledged.
  disk.syncDirectory(dirname(dir));
  removeTree(disk, away);
}

/** Finishes an interrupted exchange, and removes what was already moved aside. */
function finish(disk: Disk, files: StoreFiles): void {
  const { database, evidence } = files;
  const refused = `${database}.refused`;
  if (!existsSync(database) && isCurrent(files)) disk.rename(evidence, database);
  if (!existsSync(database) && existsSync(refused)) disk.rename(refused, database);
  for (const leftover of [refused, `${database}.made`, `${evidence}.discarded`]) removeTree(disk, leftover);
}

function isUnsupported(error: unknown): boolean {
  const codes: unknown[] = ["EPERM", "ENOTSUP", "EOPNOTSUPP", "ENOSYS", "EMLINK"];
  return error instanceof Error && "code" in error && codes.includes(error.code);
}
