import { spawn } from "node:child_process";
import { chmod, chown, constants, type FileHandle, lchown, lstat, open, stat } from "node:fs/promises";
import { VolumeError } from "./volumes.ts";

// Opens a path without following links and without opening devices or fifos.
const PIN = 0o10000000 | constants.O_NOFOLLOW;
const DIRECTORY_BITS = 0o2770;
const FILE_BITS = 0o660;

export interface GroupOwnership {
  readonly gid: number;
  readonly changePolicy: "Always" | "OnRootMismatch";
}

/**
 * Makes a group the owner of everything in a volume, with read and write access, and of new files (setgid), as
 * Kubernetes' fs_group does. Containers may change the volume at the same time; whatever links they create, nothing
 * outside the volume is changed.
 */
export async function giveToGroup(
  root: string,
  { gid, changePolicy }: GroupOwnership,
  signal: AbortSignal,
): Promise<void> {
  if (changePolicy === "OnRootMismatch" && (await rootFits(root, gid))) return;
  const walk = await PinnedWalk.begin(root);
  try {
    // The root is changed last, so that an interrupted run starts over next time.
    for await (const path of misfits(root, gid, signal)) {
      if (path !== "") await walk.change(path, gid);
    }
    await walk.changeRoot(gid);
  } finally {
    await walk.close();
  }
}

async function rootFits(root: string, gid: number): Promise<boolean> {
  const it = await stat(root);
  return it.gid === gid && (it.mode & DIRECTORY_BITS) === DIRECTORY_BITS;
}

/**
 * Yields the paths below the root that need a change. A child process finds them, because among perhaps a million files
 * usually none needs one.
 */
async function* misfits(root: string, gid: number, signal: AbortSignal): AsyncGenerator<string> {
  const isDirectory = ["-type", "d", "!", "-perm", `-${DIRECTORY_BITS.toString(8)}`];
  const isFile = ["-type", "f", "!", "-perm", `-${FILE_BITS.toString(8)}`];
  const desired = [
    "(",
    "!",
    "-gid",
    String(gid),
    "-o",
    "(",
    ...isDirectory,
    ")",
    "-o",
    "(",
    ...isFile,
    ")",
    ")",
  ];
  const child = spawn("find", ["-P", root, "-xdev", ...desired, "-printf", "%P\\0"], {
    stdio: ["ignore", "pipe", "ignore"],
    env: { PATH: "/usr/bin:/bin", LC_ALL: "C" },
    signal,
  });
  const ended = new Promise<void>((resolve, reject) => {
    child.once("error", (cause) =>
      reject(new VolumeError("HOST_FAILED", `find: ${cause.message}`, { cause })),
    );
    // Files that vanish meanwhile cause an error message; they need no change.
    child.once("close", () => resolve());
  });
  ended.catch(() => undefined);
  // File names are bytes, not text.
  child.stdout.setEncoding("latin1");
  let rest = "";
  try {
    for await (const chunk of child.stdout) {
      const paths = (rest + chunk).split("\0");
      rest = paths.pop() ?? "";
      yield* paths;
    }
    await ended;
  } catch (cause) {
    if (signal.aborted)
      throw new VolumeError("ABORTED", "giving the volume to its group: aborted", { cause });
    throw cause;
  } finally {
    child.kill("SIGKILL");
  }
}

/** Walks directories through open handles, so that no directory on the path can be replaced by a link. */
class PinnedWalk {
  readonly #root: FileHandle;
  /** Handles of the directories of the last path, from the root on. */
  #ancestors: { readonly name: string; readonly handle: FileHandle }[] = [];

  static async begin(root: string): Promise<PinnedWalk> {
    return new PinnedWalk(await open(root, PIN));
  }

  private constructor(root: FileHandle) {
    this.#root = root;
  }

  async change(path: string, gid: number): Promise<void> {
    const parts = path.split("/");
    const name = parts.pop() ?? "";
    try {
      await this.#changeEntry(await this.#enter(parts), name, gid);
    } catch (error) {
      // The path is gone or was replaced meanwhile; whatever replaced it stays unchanged.
      if (!isGone(error)) throw error;
    }
  }

  async changeRoot(gid: number): Promise<void> {
    await setOwnership(this.#root, gid);
  }

  async close(): Promise<void> {
    await this.#leave(0);
    await this.#root.close();
  }

  async #changeEntry(directory: FileHandle, name: string, gid: number): Promise<void> {
    const path = below(directory, name);
    const there = await lstat(path);
    if (there.isSymbolicLink()) return lchown(path, there.uid, gid);
    const entry = await open(path, PIN);
    try {
      await setOwnership(entry, gid);
    } finally {
      await entry.close();
    }
  }

  /** Returns the handle of the directory at these parts below the root. */
  async #enter(parts: readonly string[]): Promise<FileHandle> {
    let shared = 0;
    while (shared < parts.length && this.#ancestors[shared]?.name === parts[shared]) shared += 1;
    await this.#leave(shared);
    for (const name of parts.slice(shared)) {
      const handle = await open(below(this.#last, name), PIN | constants.O_DIRECTORY);
      this.#ancestors.push({ name, handle });
    }
    return this.#last;
  }

  get #last(): FileHandle {
    return this.#ancestors.at(-1)?.handle ?? this.#root;
  }

  async #leave(keep: number): Promise<void> {
    for (const { handle } of this.#ancestors.splice(keep)) await handle.close();
  }
}

async function setOwnership(entry: FileHandle, gid: number): Promise<void> {
  const { uid, mode } = await entry.stat();
  const isDirectory = (mode & constants.S_IFMT) === constants.S_IFDIR;
  const path = self(entry);
  await chown(path, uid, gid);
  const bits = isDirectory ? DIRECTORY_BITS : FILE_BITS;
  // Sockets and devices keep their modes. Changing the owner clears a setuid bit.
  if (isDirectory || (mode & constants.S_IFMT) === constants.S_IFREG)
    await chmod(path, (mode & 0o1777) | bits);
}

/** Returns a name that always refers to the open file, even after it was moved. */
function self(handle: FileHandle): string {
  return `/proc/self/fd/${handle.fd}`;
}

/** Returns the path of a name in an open directory, with the bytes that find printed. */
function below(directory: FileHandle, name: string): Buffer {
  return Buffer.concat([Buffer.from(`${self(directory)}/`), Buffer.from(name, "latin1")]);
}

function isGone(error: unknown): boolean {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  return code === "ENOENT" || code === "ENOTDIR" || code === "ELOOP";
}
