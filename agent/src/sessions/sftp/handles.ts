import type { Stats } from "node:fs";
import type { FileHandle } from "node:fs/promises";
import type { Directory } from "@forage/archive";
import { entriesOf } from "./rooted-files.ts";
import { SftpError, STATUS } from "./wire.ts";

export interface OpenFile {
  readonly type: "file";
  readonly file: FileHandle;
}

export interface OpenDirectory {
  readonly type: "directory";
  readonly directory: Directory;
  readonly entries: AsyncGenerator<{ readonly name: string; readonly stats: Stats }>;
}

type Open = OpenFile | OpenDirectory;

/** Clients open a few files at a time. Each uses a descriptor of the process. */
export const MAX_HANDLES = 128;

/** The open files and directories of a client, by handle. */
export class Handles {
  readonly #open = new Map<string, Open>();
  #count = 0;

  /** Throws SftpError if the client has to close others first. */
  assertRoom(): void {
    if (this.#open.size >= MAX_HANDLES)
      throw new SftpError(STATUS.failure, `${MAX_HANDLES} files and directories are open`);
  }

  addFile(file: FileHandle): string {
    return this.#add({ type: "file", file });
  }

  addDirectory(directory: Directory): string {
    return this.#add({ type: "directory", directory, entries: entriesOf(directory) });
  }

  file(name: string): FileHandle {
    const open = this.#open.get(name);
    if (open?.type !== "file") throw new SftpError(STATUS.failure, "the handle is of no open file");
    return open.file;
  }

  directory(name: string): OpenDirectory {
    const open = this.#open.get(name);
    if (open?.type !== "directory") throw new SftpError(STATUS.failure, "the handle is of no open directory");
    return open;
  }

  async close(name: string): Promise<void> {
    const open = this.#open.get(name);
    if (open === undefined) throw new SftpError(STATUS.failure, "the handle is not open");
    this.#open.delete(name);
    if (open.type === "file") return await open.file.close();
    await open.entries.return(undefined);
    await open.directory.close();
  }

  async closeAll(): Promise<void> {
    for (const name of [...this.#open.keys()]) await this.close(name).catch(() => undefined);
  }

  #add(open: Open): string {
    this.#count += 1;
    const name = String(this.#count);
    this.#open.set(name, open);
    return name;
  }
}
