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
 * The port through which the store changes its directory, with one method for each system call that changes something, so
 * that a test can simulate a crash at each of them. Plain reads use the file system directly.
 */
export interface Disk {
  /** Creates the directory and its missing parents. */
  makeDirectory(path: string): void;
  removeDirectory(path: string): void;
  link(from: string, to: string): void;
  copy(from: string, to: string): void;
  rename(from: string, to: string): void;
  unlink(path: string): void;
  /** Opens the file. `create` creates it if it is missing, `replace` also truncates it. */
  open(path: string, how: "create" | "replace"): number;
  write(fd: number, bytes: Buffer, at?: number): void;
  sync(fd: number): void;
  /** Syncs the data in the background. */
  syncLater(fd: number): Promise<void>;
  close(fd: number): void;
  /** Makes the entries of a directory durable. */
  syncDirectory(path: string): void;
  /**
   * Takes the lock of the directory, which ends with the process. Undefined if it is held by another process or by another
   * caller in this process.
   */
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

/** Removes a directory that contains only files. Does nothing if it doesn't exist. */
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

/** Writes a file atomically and durably: after a crash or power failure it is complete or absent. */
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

/** Returns the file's bytes. Undefined if there is no file. */
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
