import { constants, type Dirent, type Stats } from "node:fs";
import {
  type FileHandle,
  lstat,
  mkdir,
  open,
  opendir,
  readlink,
  rename,
  statfs,
  symlink,
  unlink,
} from "node:fs/promises";
import { ArchiveError } from "./archive-error.ts";

const { O_CREAT, O_DIRECTORY, O_EXCL, O_NOFOLLOW, O_NONBLOCK, O_RDONLY, O_WRONLY } = constants;

/**
 * An open directory. All operations use its handle and never follow a link, so that replacing a directory by a link
 * can't redirect them. Linux only: names are resolved below /proc/self/fd.
 */
export class Directory {
  readonly #handle: { readonly fd: number; close(): Promise<void> };

  private constructor(handle: { readonly fd: number; close(): Promise<void> }) {
    this.#handle = handle;
  }

  /** Opens a path, following links, because the path is the caller's own. */
  static async open(path: string): Promise<Directory> {
    return new Directory(await open(path, O_RDONLY | O_DIRECTORY));
  }

  /** Uses a directory that the caller has opened and will close. */
  static ofDescriptor(fd: number): Directory {
    return new Directory({ fd, close: async () => undefined });
  }

  async enter(name: string): Promise<Directory> {
    return new Directory(await open(this.#at(name), O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
  }

  /** Opens another handle of the same directory, which must be closed separately. */
  async again(): Promise<Directory> {
    return new Directory(await open(`/proc/self/fd/${this.#handle.fd}`, O_RDONLY | O_DIRECTORY));
  }

  async *entries(): AsyncGenerator<Dirent> {
    yield* await opendir(`/proc/self/fd/${this.#handle.fd}`);
  }

  /** Returns the status of the entry itself, even if it is a link, or undefined if there is none. */
  async stat(name: string): Promise<Stats | undefined> {
    try {
      return await lstat(this.#at(name));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
      throw error;
    }
  }

  readLink(name: string): Promise<string> {
    return readlink(this.#at(name));
  }

  /** Opens a file without blocking. A pipe or device in its place is detected by its type. */
  openFile(name: string): Promise<FileHandle> {
    return open(this.#at(name), O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  }

  createFile(name: string): Promise<FileHandle> {
    return open(this.#at(name), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600);
  }

  makeDirectory(name: string, mode: number): Promise<void> {
    return mkdir(this.#at(name), { mode }).then(() => undefined);
  }

  makeLink(name: string, target: string): Promise<void> {
    return symlink(target, this.#at(name));
  }

  rename(from: string, to: string): Promise<void> {
    return rename(this.#at(from), this.#at(to));
  }

  remove(name: string): Promise<void> {
    return unlink(this.#at(name));
  }

  /** Sets mode and time of the directory itself. */
  async finish(mode: number, modifiedMs: number): Promise<void> {
    const own = await open(`/proc/self/fd/${this.#handle.fd}`, O_RDONLY | O_DIRECTORY);
    try {
      await own.chmod(mode);
      await own.utimes(modifiedMs / 1000, modifiedMs / 1000);
    } finally {
      await own.close();
    }
  }

  /** Returns the type of the directory's file system: a magic number of statfs(2). */
  async fileSystem(): Promise<number> {
    return (await statfs(`/proc/self/fd/${this.#handle.fd}`)).type;
  }

  close(): Promise<void> {
    return this.#handle.close();
  }

  /**
   * Returns the path of an entry, or of the directory itself, for the caller's own operations. They must not follow
   * links, because the entry may have become one.
   */
  pathOf(name: string | undefined): string {
    return name === undefined ? `/proc/self/fd/${this.#handle.fd}/.` : this.#at(name);
  }

  #at(name: string): string {
    if (name === "" || name === "." || name === ".." || /[/\0]/.test(name))
      throw new ArchiveError("REFUSED", `"${name}" is not a valid file name`);
    return `/proc/self/fd/${this.#handle.fd}/${name}`;
  }
}
