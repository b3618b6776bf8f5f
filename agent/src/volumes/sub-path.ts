import { typeAt } from "./host-path.ts";
import { isPartOf, mountAt, readMountTable, type Subtree } from "./mount-table.ts";
import { type Mounts, makeMountPoint, removeMountPoint } from "./mounts.ts";
import { type ChildRunner, outputEndOf } from "./run-child.ts";
import { VolumeError } from "./volumes.ts";

// The volume may be on a server that is unreachable; see host-path.ts.
const ANSWER_MS = 10_000;

export interface PinOptions {
  readonly children: ChildRunner;
  readonly mounts: Mounts;
}

export interface PinRequest {
  /** The canonical path of the volume's directory, and the part of the host's file systems that it shows. */
  readonly root: string;
  readonly visible: readonly Subtree[];
  /** A checked relative path without `..`. Empty: the root itself. */
  readonly subPath: string;
  /** Whether missing directories are created. */
  readonly create: boolean;
  /** The mount point, which only the agent can change. */
  readonly target: string;
  /** Whether mounts below the path are visible too. */
  readonly recursive?: boolean;
}

/**
 * Bind-mounts a path of a volume that containers may be changing at the same time, and checks the mounted directory
 * afterwards. A mount keeps its directory, so a directory in the volume stays there, whatever links led to it. Child
 * processes make all calls, because the volume may hang. @throws VolumeError ESCAPES, SOURCE_MISSING.
 */
export async function pinSubPath(request: PinRequest, parts: PinOptions, signal: AbortSignal): Promise<void> {
  const { root, subPath, create, target } = request;
  await parts.mounts.unmountAll(target, signal);
  const path = subPath === "" ? root : `${root}/${subPath}`;
  const type = await typeAt(path, parts.children, signal).catch((error) => lookedThrough(error, subPath));
  if (type !== undefined) return pin(path, type, request, parts, signal);
  if (!create) throw new VolumeError("SOURCE_MISSING", `sub_path ${subPath} doesn't exist in the volume`);
  await createPinned(request, parts, signal);
}

/** Translates a link loop, or a file in place of a directory, into an error about the volume. */
function lookedThrough(error: unknown, subPath: string): never {
  if (error instanceof VolumeError && error.code === "HOST_FAILED") {
    throw new VolumeError("WRONG_TYPE", `sub_path ${subPath}: ${error.message}`, { cause: error });
  }
  throw error;
}

async function pin(
  path: string,
  type: string,
  { visible, subPath, target, recursive = false }: PinRequest,
  { mounts }: PinOptions,
  signal: AbortSignal,
): Promise<void> {
  await makeMountPoint(target, type === "a directory" ? "directory" : "file");
  await mounts.mount({ source: path, target, options: [], recursive }, signal);
  const mounted = mountAt(await readMountTable(), target);
  if (mounted !== undefined && visible.some((part) => isPartOf(mounted, part))) return;
  await mounts.unmountAll(target, new AbortController().signal);
  await removeMountPoint(target);
  throw new VolumeError("ESCAPES", `sub_path ${subPath} leads out of the volume`);
}

/**
 * Creates the missing directories one by one, each in a pinned parent. No link can therefore lead out of the volume,
 * because the last part of a created path is never followed. The directories get the mode of the volume's root, as in
 * Kubernetes.
 */
async function createPinned(request: PinRequest, parts: PinOptions, signal: AbortSignal): Promise<void> {
  const { root, subPath, target } = request;
  const options = { signal, timeoutMs: ANSWER_MS };
  const mode = (await parts.children.must("stat", ["-L", "-c", "%a", "--", root], options)).trim();
  const names = subPath.split("/").filter((name) => name !== "" && name !== ".");
  // Two mount points alternate, because the parent stays mounted while its child is being mounted.
  const places = [`${target}.way`, target];
  if (names.length % 2 === 0) places.reverse();
  let parent = root;
  try {
    for (const [index, name] of names.entries()) {
      const path = `${parent}/${name}`;
      const made = await parts.children.run("mkdir", ["-m", mode, "--", path], options);
      if (made.exitCode !== 0 && !/File exists/.test(made.stderr)) {
        throw new VolumeError("HOST_FAILED", `sub_path ${subPath}: ${outputEndOf(made)}`);
      }
      // The number of parts selects the first mount point, so that the last directory is pinned at the target.
      const place = places[(index + 1) % 2] ?? target;
      await parts.mounts.unmountAll(place, signal);
      await pin(path, "a directory", { ...request, target: place }, parts, signal);
      parent = place;
    }
  } catch (error) {
    // Perhaps only a parent directory is mounted.
    await parts.mounts.unmountAll(target, new AbortController().signal);
    throw error;
  } finally {
    await parts.mounts.unmountAll(`${target}.way`, new AbortController().signal);
    await removeMountPoint(`${target}.way`);
  }
}
