import {
  closeSync,
  constants,
  copyFileSync,
  existsSync,
  fdatasync,
  fsyncSync,
  linkSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmdirSync,
  statSync,
  unlinkSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { type DirectoryLock, lockDirectory } from "@forage/identity/directory-lock";
import { type Database, openDatabase, repairDatabase } from "./database.ts";

/**
 * The port through which the store changes its directory: one method for each system call that changes something, so
 * that a test can end the process at each of them. Reads that change nothing go to the file system directly.
 */
export interface Disk {
  /** Makes the directory and its parents where they are missing. */
  makeDirectory(path: string): void;
  removeDirectory(path: string): void;
  link(from: string, to: string): void;
  copy(from: string, to: string): void;
  rename(from: string, to: string): void;
  unlink(path: string): void;
  /** `create` opens or creates the file, `replace` truncates it as well. */
  open(path: string, how: "create" | "replace"): number;
  write(fd: number, bytes: Buffer, at?: number): void;
  sync(fd: number): void;
  /** Syncs the data in the background. */
  syncLater(fd: number): Promise<void>;
  close(fd: number): void;
  /** Makes the names in a directory durable. */
  syncDirectory(path: string): void;
  /** Takes the lock of the directory, which ends with the process. Undefined: it is held, also by another caller in this process. */
  lock(dir: string): Promise<DirectoryLock | undefined>;
  openDatabase(dir: string): Promise<Database>;
  repairDatabase(dir: string): Promise<void>;
}

const syncData = promisify(fdatasync);

export const SYSTEM_DISK: Disk = {
  makeDirectory: (path) => void mkdirSync(path, { recursive: true, mode: 0o700 }),
  removeDirectory: rmdirSync,
  link: linkSync,
  copy: copyFileSync,
  rename: renameSync,
  unlink: unlinkSync,
  open: (path, how) => openSync(path, how === "create" ? CREATE : REPLACE, 0o600),
  write: writeAll,
  sync: fsyncSync,
  syncLater: syncData,
  close: closeSync,
  syncDirectory,
  lock: lockDirectory,
  openDatabase,
  repairDatabase,
};

/** Removes a directory of files, or does nothing where there is none. */
export function removeTree(disk: Disk, dir: string): void {
  if (!existsSync(dir)) return;
  emptyDirectory(disk, dir);
  disk.removeDirectory(dir);
}

export function emptyDirectory(disk: Disk, dir: string): void {
  for (const entry of readdirSync(dir, { withFileTypes: true })) {
    const path = join(dir, entry.name);
    if (entry.isDirectory()) removeTree(disk, path);
    else disk.unlink(path);
  }
}

/** Writes a file that is there complete or not at all, also after a power failure. */
export function writeWhole(disk: Disk, path: string, bytes: Buffer): void {
  const unfinished = `${path}.new`;
  const fd = disk.open(unfinished, "replace");
  try {
    disk.write(fd, bytes);
    disk.sync(fd);
  } finally {
    disk.close(fd);
  }
  disk.rename(unfinished, path);
}

/** The file's bytes; undefined where there is no file. */
export function readIfExists(path: string): Buffer | undefined {
  return existsSync(path) ? readFileSync(path) : undefined;
}

export function sizeOf(path: string): number | undefined {
  return statSync(path, { throwIfNoEntry: false })?.size;
}

const CREATE = constants.O_RDWR | constants.O_CREAT;
const REPLACE = CREATE | constants.O_TRUNC;

function writeAll(fd: number, bytes: Buffer, at?: number): void {
  for (let done = 0; done < bytes.length; ) {
    done += writeSync(fd, bytes, done, bytes.length - done, at === undefined ? undefined : at + done);
  }
}

function syncDirectory(path: string): void {
  const fd = openSync(path, constants.O_RDONLY);
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}
