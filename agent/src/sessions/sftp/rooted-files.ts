import { constants, type Stats, type StatsFs } from "node:fs";
import {
  chmod,
  chown,
  type FileHandle,
  link,
  lstat,
  mkdir,
  open,
  opendir,
  rename,
  rmdir,
  statfs,
  symlink,
  unlink,
  utimes,
} from "node:fs/promises";
import { posix } from "node:path";
import { type Directory, resolveInRoot } from "@forage/archive";
import type { Attributes } from "./attributes.ts";
import { OPEN_FLAG, SftpError, STATUS } from "./wire.ts";

const { O_APPEND, O_CREAT, O_EXCL, O_NOFOLLOW, O_NONBLOCK, O_RDONLY, O_RDWR, O_TRUNC, O_WRONLY } = constants;
/** Opens an entry of any kind for its status and attributes only. Node has no constant for it. */
const O_PATH = 0o10000000;
const DEFAULT_FILE_MODE = 0o666;
const DEFAULT_DIRECTORY_MODE = 0o777;
/** The default umask of most images. The container's own umask is unknown. */
const UMASK = 0o022;

/** An entry of an open directory. */
interface Entry {
  readonly directory: Directory;
  /** The entry's name. Undefined: the directory itself. */
  readonly name: string | undefined;
}

/**
 * The files below a root directory, as seen by a process with that root. Every step of a path is looked up in an open
 * directory, so that links exchanged meanwhile can't lead out. `..` is resolved in the text of a path, as clients do.
 */
export class RootedFiles {
  readonly #root: Directory;
  readonly #start: string;

  /** Relative paths start at the directory `start`. */
  constructor(root: Directory, start: string) {
    this.#root = root;
    this.#start = posix.resolve("/", start);
  }

  /** Returns the absolute path, without resolving links. */
  absolute(path: string): string {
    return posix.resolve(this.#start, path);
  }

  async status(path: string, follow: boolean): Promise<Stats> {
    return this.#on(path, follow, async (entry) => await lstat(pathOf(entry)));
  }

  async open(path: string, flags: number, mode: number | undefined): Promise<FileHandle> {
    const has = (flag: number): boolean => (flags & flag) !== 0;
    const isNew = has(OPEN_FLAG.create) && has(OPEN_FLAG.exclusive);
    const access = has(OPEN_FLAG.write) ? (has(OPEN_FLAG.read) ? O_RDWR : O_WRONLY) : O_RDONLY;
    const append = has(OPEN_FLAG.append) ? O_APPEND : 0;
    return this.#on(path, !isNew, async (entry) => {
      const exists = entry.name === undefined || (await entry.directory.stat(entry.name)) !== undefined;
      if (has(OPEN_FLAG.create) && (isNew || !exists))
        return await open(
          pathOf(entry),
          access | append | O_CREAT | O_EXCL | O_NOFOLLOW,
          (mode ?? DEFAULT_FILE_MODE) & ~UMASK,
        );
      // Check for a regular file before opening it, because opening a pipe or a device may have effects.
      const truncate = has(OPEN_FLAG.truncate) ? O_TRUNC : 0;
      return await holding(entry, async (held) => {
        if (!(await held.stat()).isFile()) throw new SftpError(STATUS.failure, "it is not a regular file");
        return await open(pathOfHandle(held), access | append | truncate | O_NONBLOCK);
      });
    });
  }

  async openDirectory(path: string): Promise<Directory> {
    return this.#on(path, true, ({ directory, name }) =>
      name === undefined ? directory.again() : directory.enter(name),
    );
  }

  async setAttributes(path: string, attributes: Attributes): Promise<void> {
    await this.#on(path, true, (entry) => holding(entry, (held) => setAttributes(held, attributes)));
  }

  async remove(path: string): Promise<void> {
    await this.#on(path, false, (entry) => unlink(pathOf(entry)));
  }

  async makeDirectory(path: string, mode: number | undefined): Promise<void> {
    const given = (mode ?? DEFAULT_DIRECTORY_MODE) & ~UMASK;
    await this.#on(path, false, (entry) => mkdir(pathOf(entry), { mode: given }));
  }

  async removeDirectory(path: string): Promise<void> {
    await this.#on(path, false, (entry) => rmdir(pathOf(entry)));
  }

  async rename(from: string, to: string): Promise<void> {
    await this.#on(from, false, (source) =>
      this.#on(to, false, (target) => rename(pathOf(source), pathOf(target))),
    );
  }

  /**
   * Renames without replacing an existing entry, even one that appears meanwhile: only an empty directory can be
   * replaced, and only by a directory.
   */
  async renameToFree(from: string, to: string): Promise<void> {
    const stats = await this.status(from, false);
    if (!stats.isDirectory()) {
      await this.link(from, to);
      return this.remove(from);
    }
    const isThere = await this.status(to, false).then(
      () => true,
      () => false,
    );
    if (isThere) throw new SftpError(STATUS.failure, `${to} is already there`);
    await this.rename(from, to);
  }

  async link(from: string, to: string): Promise<void> {
    await this.#on(from, false, (source) =>
      this.#on(to, false, (target) => link(pathOf(source), pathOf(target))),
    );
  }

  async symbolicLink(target: string, path: string): Promise<void> {
    await this.#on(path, false, (entry) => symlink(target, pathOf(entry)));
  }

  async readLink(path: string): Promise<string> {
    return this.#on(path, false, async ({ directory, name }) => {
      if (name === undefined) throw new SftpError(STATUS.failure, "it is not a link");
      return await directory.readLink(name);
    });
  }

  async fileSystem(path: string): Promise<StatsFs> {
    return this.#on(path, true, (entry) => holding(entry, (held) => statfs(pathOfHandle(held))));
  }

  /** Calls `use` with the entry at the end of a path. A link there is followed if `follow` is set. */
  async #on<T>(path: string, follow: boolean, use: (entry: Entry) => Promise<T>): Promise<T> {
    const entry = await this.#find(this.absolute(path), follow);
    try {
      return await use(entry);
    } finally {
      await entry.directory.close();
    }
  }

  async #find(path: string, follow: boolean): Promise<Entry> {
    if (follow || path === "/") return await resolveInRoot(this.#root, path);
    const parent = await resolveInRoot(this.#root, posix.dirname(path));
    if (parent.name === undefined) return { directory: parent.directory, name: posix.basename(path) };
    try {
      return { directory: await parent.directory.enter(parent.name), name: posix.basename(path) };
    } finally {
      await parent.directory.close();
    }
  }
}

/** Changes the attributes of an open file, including a file opened for its attributes only. */
export async function setAttributes(held: FileHandle, attributes: Attributes): Promise<void> {
  const { size, owner, mode, times } = attributes;
  const path = pathOfHandle(held);
  if (size !== undefined) {
    const file = await open(path, O_WRONLY | O_NONBLOCK);
    await file.truncate(size).finally(() => file.close());
  }
  if (owner !== undefined) await chown(path, owner.uid, owner.gid);
  if (mode !== undefined) await chmod(path, mode);
  if (times !== undefined) await utimes(path, times.accessedSeconds, times.modifiedSeconds);
}

export async function* entriesOf(directory: Directory): AsyncGenerator<{ name: string; stats: Stats }> {
  for await (const { name } of await opendir(directory.pathOf(undefined))) {
    const stats = await directory.stat(name);
    // The entry was deleted meanwhile.
    if (stats !== undefined) yield { name, stats };
  }
}

/**
 * Calls `use` with a handle of the entry itself, whatever gets its name meanwhile. Rejects for a link, which has no
 * attributes to change.
 */
async function holding<T>(entry: Entry, use: (held: FileHandle) => Promise<T>): Promise<T> {
  const held = await open(pathOf(entry), O_PATH | O_NOFOLLOW);
  try {
    if ((await held.stat()).isSymbolicLink())
      throw new SftpError(STATUS.failure, "it was replaced by a link");
    return await use(held);
  } finally {
    await held.close();
  }
}

function pathOf({ directory, name }: Entry): string {
  return directory.pathOf(name);
}

/** Returns a path that the kernel resolves to the open file, even if its name was given to another. */
function pathOfHandle({ fd }: FileHandle): string {
  return `/proc/self/fd/${fd}`;
}
