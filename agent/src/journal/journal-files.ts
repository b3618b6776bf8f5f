import { readFile, rm } from "node:fs/promises";
import {
  listSettled,
  makePrivateDirectory,
  type NamedFile,
  setAside,
  syncDirectory,
  writeFilesDurably,
} from "./durable-files.ts";

/** The files of the journal. Every change survives a crash of the agent and a power cut once its promise resolves. */
export interface JournalFiles {
  /** Creates the directory if it is missing. */
  makeDirectory(dir: string): Promise<void>;
  /** Returns the names in the directory, after removing files of writes that a crash interrupted. */
  list(dir: string): Promise<readonly string[]>;
  read(path: string): Promise<Buffer>;
  /** Writes each file atomically. A crash may leave some of the files written and others not. */
  write(dir: string, files: readonly NamedFile[]): Promise<void>;
  /** Succeeds if the file is missing. The removal may be lost in a power cut before the next `sync`. */
  remove(path: string): Promise<void>;
  /** Renames an unreadable file, for an operator to inspect. Returns the new path. */
  setAside(dir: string, name: string): Promise<string>;
  /** Makes renames and removals in the directory durable. */
  sync(dir: string): Promise<void>;
}

/** Keeps the files on the host's disk. */
export const hostFiles: JournalFiles = {
  makeDirectory: makePrivateDirectory,
  list: listSettled,
  read: (path) => readFile(path),
  write: writeFilesDurably,
  remove: (path) => rm(path, { force: true }),
  setAside,
  sync: syncDirectory,
};
