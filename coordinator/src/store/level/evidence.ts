import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { type Disk, readIfExists, removeTree, writeWhole } from "./disk.ts";
import type { StoreFiles } from "./files.ts";

/** The copy of the HEAD file beside the links. LevelDB ignores a file with this name. */
const HEAD_COPY = "HEAD";

/** The files of LevelDB that are not linked: the lock must not be touched, and the logs are for people only. */
const NOT_KEPT = new Set(["LOCK", "LOG", "LOG.old", HEAD_COPY]);

type Found = "absent" | "linked" | "linked before" | "not linked";

/**
 * Keeps the original files of the database while it is opened and checked. Opening makes LevelDB recover: it writes new
 * files and deletes old ones, including files that it could not read. If the check fails, the original files are put back,
 * so that a refused store is unchanged and other attempts are possible.
 *
 * The files are hard links, which cost nothing, because LevelDB never writes to an existing file.
 *
 * A process can end at any step. So the directory gets its final name only when it is complete, and loses that name before
 * any of it is removed. Evidence of an earlier, interrupted opening counts only if HEAD is the same as then: every
 * acknowledged write changes HEAD, and is not part of the evidence.
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

  /** Whether there was no database. */
  get isOfNothing(): boolean {
    return this.#found === "absent";
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

  /** Restores the original files of an opening that was interrupted. */
  static restore(disk: Disk, files: StoreFiles): void {
    finish(disk, files);
    if (isCurrent(files)) exchange(disk, files);
    else discard(disk, files.evidence);
  }

  /** Removes the evidence. Called when the store is undamaged, so that LevelDB's new files count. */
  discard(): void {
    discard(this.#disk, this.#files.evidence);
  }

  /** Restores the original files. Called when the store is refused, after the database was closed. */
  putBack(): void {
    if (this.#found === "not linked") return;
    if (this.#found === "absent") renameAside(this.#disk, this.#files.database, ".made");
    else exchange(this.#disk, this.#files);
  }

  /**
   * Removes the evidence that this opening made, without changing the database. Called when another process uses the files.
   */
  withdraw(): void {
    if (this.#found === "linked") this.discard();
  }
}

/** Links each file of a database into another directory. Returns false if hard links are not supported. */
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

/** Returns the names of the files of a database. */
export function databaseFiles(dir: string): string[] {
  return readdirSync(dir).filter((name) => !NOT_KEPT.has(name));
}

const NO_HEAD = Buffer.alloc(0);

/** Reports whether there is evidence, and nothing was acknowledged since it was made. */
function isCurrent({ evidence, head }: StoreFiles): boolean {
  const copy = join(evidence, HEAD_COPY);
  return existsSync(copy) && readFileSync(copy).equals(readIfExists(head) ?? NO_HEAD);
}

/** Replaces the database with the evidence. */
function exchange(disk: Disk, { database, evidence }: StoreFiles): void {
  if (existsSync(database)) disk.rename(database, `${database}.refused`);
  disk.rename(evidence, database);
  disk.syncDirectory(dirname(database));
  removeTree(disk, `${database}.refused`);
  disk.unlink(join(database, HEAD_COPY));
}

function discard(disk: Disk, evidence: string): void {
  renameAside(disk, evidence, ".discarded");
}

/** Renames the directory before it is removed, so that a part of it is never mistaken for the whole. */
export function renameAside(disk: Disk, dir: string, suffix: string): void {
  if (!existsSync(dir)) return;
  const away = `${dir}${suffix}`;
  disk.rename(dir, away);
  // Otherwise a power failure could restore the name after newer records were acknowledged.
  disk.syncDirectory(dirname(dir));
  removeTree(disk, away);
}

/** Finishes an interrupted exchange, and removes directories that were renamed for removal. */
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
