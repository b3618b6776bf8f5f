import { lstat, mkdir, open, readdir, rmdir, unlink } from "node:fs/promises";
import { dirname, join } from "node:path";
import { mountAt, mountsBelow, readMountTable } from "./mount-table.ts";
import { type ChildRunner, wordsOf } from "./run-child.ts";
import { VolumeError } from "./volumes.ts";

// A plain unmount writes back what is cached; one that takes longer waits for a server or a sick disk.
const UNMOUNT_MS = 10_000;
/** A process that has just ended may hold files a moment longer. */
const BUSY_TRIES = 3;
const BUSY_PAUSE_MS = 100;
// Millions of files on a slow disk.
const REMOVE_MS = 1_800_000;
// Mounts can be stacked; more rounds than this and someone mounts as fast as we unmount.
const ROUNDS_MAX = 10;

export interface MountRequest {
  /** Undefined: a bind mount. */
  readonly type?: "tmpfs" | "ext4";
  readonly source: string;
  readonly target: string;
  readonly options: readonly string[];
  /** Whether a bind mount includes the mounts below its source. */
  readonly recursive?: boolean;
}

/** Mounts and unmounts, always in child processes. */
export class Mounts {
  readonly #children: ChildRunner;

  constructor(children: ChildRunner) {
    this.#children = children;
  }

  async mount(
    { type, source, target, options, recursive = false }: MountRequest,
    signal: AbortSignal,
  ): Promise<void> {
    // Mounts below it come along, and are taken away again without an effect on those that they were made from.
    const bind = recursive ? ["--rbind", "--make-rprivate"] : ["--bind"];
    const what = type === undefined ? bind : ["-t", type];
    const settings = options.length === 0 ? [] : ["-o", options.join(",")];
    // Without -c the program would resolve links itself, and then mount what it found by name.
    await this.#children.must("mount", ["-c", "-n", ...what, ...settings, "--", source, target], { signal });
  }

  /** Reports whether something is mounted exactly there. */
  async isMounted(path: string): Promise<boolean> {
    return mountAt(await readMountTable(), path) !== undefined;
  }

  /** Unmounts all at and below the path, by force what doesn't go otherwise. Rejects if something is still there. */
  async unmountAll(path: string, signal: AbortSignal): Promise<void> {
    for (let round = 0; round < ROUNDS_MAX; round += 1) {
      const mounts = mountsBelow(await readMountTable(), path);
      if (mounts.length === 0) return;
      for (const { mountPoint } of mounts) await this.#unmount(mountPoint, signal);
    }
    throw new VolumeError("HOST_FAILED", `${path}: something is still mounted`);
  }

  async #unmount(path: string, signal: AbortSignal): Promise<void> {
    for (let attempt = 0; attempt < BUSY_TRIES; attempt += 1) {
      const plain = await this.#try(["-c", "-n", "-i", "--", path], signal);
      if (plain !== "busy") break;
      await new Promise((resolve) => setTimeout(resolve, BUSY_PAUSE_MS));
    }
    if (!(await this.isMounted(path))) return;
    // Lazy: the name is free now, the file system goes when its last user does. -f makes NFS give up waiting requests.
    const forced = await this.#children.run("umount", ["-c", "-n", "-i", "-f", "-l", "--", path], {
      timeoutMs: UNMOUNT_MS,
      signal,
    });
    if (forced.exitCode !== 0 && (await this.isMounted(path))) {
      throw new VolumeError("HOST_FAILED", `umount: ${wordsOf(forced)}`);
    }
  }

  async #try(args: readonly string[], signal: AbortSignal): Promise<"done" | "busy" | "hangs"> {
    try {
      const result = await this.#children.run("umount", args, { timeoutMs: UNMOUNT_MS, signal });
      return result.exitCode === 0 ? "done" : "busy";
    } catch (error) {
      if (error instanceof VolumeError && error.code === "UNAVAILABLE") return "hangs";
      throw error;
    }
  }
}

/** Makes an empty directory or file to mount on; what is there of that kind stays. */
export async function makeMountPoint(path: string, kind: "directory" | "file"): Promise<void> {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  const there = await lstat(path).catch(() => undefined);
  if (there !== undefined && there.isDirectory() !== (kind === "directory")) await removeMountPoint(path);
  if (kind === "directory") await mkdir(path, { recursive: true, mode: 0o700 });
  else await (await open(path, "a", 0o600)).close();
}

/** Removes the mount point only if it is empty. If something were still mounted there, its contents would be safe. */
export async function removeMountPoint(path: string): Promise<void> {
  try {
    await rmdir(path);
  } catch (error) {
    const code = codeOf(error);
    if (code === "ENOTDIR") await removeEmptyFile(path);
    else if (code !== "ENOENT") throw error;
  }
}

/** Removes a tree that consists of mount points only. */
export async function removeMountPoints(directory: string): Promise<void> {
  const entries = await readdir(directory, { withFileTypes: true }).catch(() => []);
  for (const entry of entries) {
    const path = join(directory, entry.name);
    if (entry.isDirectory()) await removeMountPoints(path);
    else await removeEmptyFile(path);
  }
  await removeMountPoint(directory);
}

async function removeEmptyFile(path: string): Promise<void> {
  const { size } = await lstat(path);
  if (size !== 0) throw new VolumeError("HOST_FAILED", `${path} should be an empty mount point, and isn't`);
  await unlink(path).catch((error) => {
    if (codeOf(error) !== "ENOENT") throw error;
  });
}

export interface RemoveTreeOptions {
  /** Whether the deletion yields the processor to other programs. Default: false. */
  readonly background?: boolean;
}

/** Deletes a tree of our own, in a child: it may be large. Neither follows links nor crosses into other file systems. */
export async function removeTree(
  path: string,
  children: ChildRunner,
  signal: AbortSignal,
  { background = false }: RemoveTreeOptions = {},
): Promise<void> {
  if (mountsBelow(await readMountTable(), path).length > 0) {
    throw new VolumeError("HOST_FAILED", `${path} is not deleted: something is still mounted there`);
  }
  const options = { signal, timeoutMs: REMOVE_MS };
  const args = ["-rf", "--one-file-system", "--", path];
  if (background) await children.must("nice", ["-n", "10", "rm", ...args], options);
  else await children.must("rm", args, options);
}

export function codeOf(error: unknown): string | undefined {
  return error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : undefined;
}
