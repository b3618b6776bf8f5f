import { posix } from "node:path";
import { checkHostPathType, typeAt } from "./host-path.ts";
import { readMountTable, visibleFrom } from "./mount-table.ts";
import { removeMountPoint } from "./mounts.ts";
import { type PinOptions, pinSubPath } from "./sub-path.ts";
import { type HostPathType, VolumeError } from "./volumes.ts";

// The path may be on a server that is unreachable; see host-path.ts.
const ANSWER_MS = 10_000;

export interface LimitedHostPath {
  readonly path: string;
  readonly pathType: HostPathType;
  /** Absolute paths of the allowed directories. */
  readonly within: readonly string[];
  /** The mount point, which only the agent can change. */
  readonly target: string;
}

/**
 * Mounts a host path that must be below one of several directories, in which pods may change links at the same time.
 * The mount is checked afterwards, and then keeps its content. A path that is mounted already is left unchanged.
 * @throws VolumeError ESCAPES, SOURCE_MISSING, WRONG_TYPE, UNAVAILABLE.
 */
export async function pinHostPath(
  { path, pathType, within, target }: LimitedHostPath,
  parts: PinOptions,
  signal: AbortSignal,
): Promise<void> {
  if (await parts.mounts.isMounted(target)) return;
  const root = coveringPrefix(path, within);
  if (root === undefined) {
    throw new VolumeError(
      "ESCAPES",
      `host path ${path} is not allowed: the policy of the pod's namespace allows ${listed(within)}`,
    );
  }
  const create = pathType === "" || pathType === "DirectoryOrCreate";
  // The operator has allowed the directory, but it may not exist yet.
  if (create)
    await parts.children.run("mkdir", ["-p", "-m", "0755", "--", root], { signal, timeoutMs: ANSWER_MS });
  const real = await realPath(root, parts, signal);
  if (real !== root) {
    throw new VolumeError(
      "ESCAPES",
      `host path ${path}: the allowed path ${root} leads through a link to ${real}; allow ${real} in the namespace's policy and use it in the pod`,
    );
  }
  const subPath = posix.relative(root, posix.normalize(path));
  const visible = visibleFrom(await readMountTable(), root);
  const request = { root, visible, subPath, create, target, recursive: true };
  try {
    if (pathType === "FileOrCreate") await createFile(request, parts, signal);
    await pinSubPath(request, parts, signal);
    checkHostPathType(path, pathType, await typeAt(target, parts.children, signal));
  } catch (error) {
    await parts.mounts.unmountAll(target, new AbortController().signal);
    throw inTermsOfHost(error, path, root);
  }
}

/**
 * Returns the outermost allowed directory of the path, because pods that write in it may replace the inner ones by
 * links.
 */
function coveringPrefix(path: string, within: readonly string[]): string | undefined {
  const normal = posix.normalize(path).replace(/(.)\/$/, "$1");
  const covering = within
    .map((prefix) => posix.normalize(prefix).replace(/(.)\/$/, "$1"))
    .filter((prefix) => prefix === "/" || normal === prefix || normal.startsWith(`${prefix}/`));
  return covering.toSorted((a, b) => a.length - b.length)[0];
}

async function realPath(path: string, { children }: PinOptions, signal: AbortSignal): Promise<string> {
  if ((await typeAt(path, children, signal)) === undefined)
    throw new VolumeError("SOURCE_MISSING", `host path ${path} doesn't exist`);
  const options = { signal, timeoutMs: ANSWER_MS };
  return (await children.must("realpath", ["-e", "-z", "--", path], options)).replace(/\0$/, "");
}

/** Creates an empty file in a pinned directory without following a link. */
async function createFile(
  request: Parameters<typeof pinSubPath>[0],
  parts: PinOptions,
  signal: AbortSignal,
): Promise<void> {
  const { subPath, target } = request;
  if (subPath === "") return;
  const place = `${target}.parent`;
  const parent = posix.dirname(subPath);
  try {
    await pinSubPath(
      { ...request, subPath: parent === "." ? "" : parent, create: false, target: place },
      parts,
      signal,
    );
    // With noclobber, the shell opens the file with O_EXCL.
    const script = 'test -e "$1" || { set -C; : > "$1" && chmod 0644 "$1"; }';
    const file = `${place}/${posix.basename(subPath)}`;
    await parts.children.must("sh", ["-c", script, "sh", file], { signal, timeoutMs: ANSWER_MS });
  } finally {
    await parts.mounts.unmountAll(place, new AbortController().signal);
    await removeMountPoint(place);
  }
}

function inTermsOfHost(error: unknown, path: string, root: string): unknown {
  if (!(error instanceof VolumeError)) return error;
  if (error.code === "ESCAPES")
    return new VolumeError(
      "ESCAPES",
      `host path ${path} leads through a link out of ${root}, which the policy of the pod's namespace allows`,
      { cause: error },
    );
  if (error.code === "SOURCE_MISSING")
    return new VolumeError("SOURCE_MISSING", `host path ${path} doesn't exist`, { cause: error });
  return error;
}

function listed(within: readonly string[]): string {
  return within.length === 0 ? "no host path" : within.join(", ");
}
