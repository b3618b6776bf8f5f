import { lstat, mkdir, open, readdir, rmdir, unlink } from "node:fs/promises";
import { dirname, join } from "node:path";
import { mountAt, mountsBelow, readMountTable } from "./mount-table.ts";
import { type ChildRunner, outputEndOf } from "./run-child.ts";
import { VolumeError } from "./volumes.ts";

// A plain unmount writes back cached data; one that takes longer waits for a server or a failing disk.
const UNMOUNT_MS = 10_000;
/** A process that has just ended may hold files for a moment longer. */
const BUSY_TRIES = 3;
const BUSY_PAUSE_MS = 100;
// Allows for millions of files on a slow disk.
const REMOVE_MS = 1_800_000;
// Mounts can be stacked. If more rounds are needed, another program keeps mounting.
const ROUNDS_MAX = 10;

export interface MountRequest {
  /** The file system type. Undefined: a bind mount. */
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
    // Mounts below the source are included. Unmounting them later has no effect on the originals.
    const bind = recursive ? ["--rbind", "--make-rprivate"] : ["--bind"];
    const what = type === undefined ? bind : ["-t", type];
    const settings = options.length === 0 ? [] : ["-o", options.join(",")];
    // Without -c, mount would resolve links itself and mount whatever the name then refers to.
    await this.#children.must("mount", ["-c", "-n", ...what, ...settings, "--", source, target], { signal });
  }

  /** Reports whether something is mounted exactly at the path. */
  async isMounted(path: string): Promise<boolean> {
    return mountAt(await readMountTable(), path) !== undefined;
  }

  /** Unmounts everything at and below the path, by force if necessary. Rejects if something is still mounted. */
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
    // A lazy unmount frees the name now, and the file system when its last user ends. -f makes NFS abort waiting
    // requests.
    const forced = await this.#children.run("umount", ["-c", "-n", "-i", "-f", "-l", "--", path], {
      timeoutMs: UNMOUNT_MS,
      signal,
    });
    if (forced.exitCode !== 0 && (await this.isMounted(path))) {
      throw new VolumeError("HOST_FAILED", `umount: ${outputEndOf(forced)}`);
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

/** Creates an empty directory or file to mount on. Keeps an existing one of that kind. */
export async function makeMountPoint(path: string, kind: "directory" | "file"): Promise<void> {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  const there = await lstat(path).catch(() => undefined);
  if (there !== undefined && there.isDirectory() !== (kind === "directory")) await removeMountPoint(path);
  if (kind === "directory") await mkdir(path, { recursive: true, mode: 0o700 });
  else await (await open(path, "a", 0o600)).close();
}

/** Removes the mount point only if it is empty, so that the content is safe if something is still mounted there. */
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

/**
 * Deletes a tree of the agent's own in a child process, because it may be large. Follows no links and stays in its file
 * system.
 */
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
