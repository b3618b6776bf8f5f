import { type Mounts, makeMountPoint } from "./mounts.ts";
import { type ChildRunner, outputEndOf } from "./run-child.ts";
import { VolumeError } from "./volumes.ts";

export const MOUNT_NFS = "/usr/sbin/mount.nfs";
// A reachable server responds within this time, wherever it is. Otherwise the caller retries while a pod needs the
// volume.
const MOUNT_MS = 30_000;
const ANSWER_MS = 5_000;

export interface NfsExport {
  readonly server: string;
  readonly path: string;
  readonly readOnly: boolean;
}

export interface NfsOptions {
  readonly children: ChildRunner;
  readonly mounts: Mounts;
  readonly mountProgram: string;
}

/**
 * Mounts an export, unless it is mounted already. The mount itself waits for its server indefinitely (`hard`), so that
 * no write is lost.
 */
export async function mountNfs(
  { server, path, readOnly }: NfsExport,
  target: string,
  { children, mounts, mountProgram }: NfsOptions,
  signal: AbortSignal,
): Promise<void> {
  if (await mounts.isMounted(target)) return;
  await makeMountPoint(target, "directory");
  // retry=0 means one attempt, in the foreground; the agent retries by itself.
  const options = ["hard", "retry=0", "nodev", "nosuid", readOnly ? "ro" : "rw"];
  const what = `nfs ${server}:${path}`;
  try {
    const result = await children.run(mountProgram, [`${server}:${path}`, target, "-o", options.join(",")], {
      signal,
      timeoutMs: MOUNT_MS,
    });
    if (result.exitCode !== 0) throw refusal(what, outputEndOf(result));
  } catch (error) {
    if (!(error instanceof VolumeError) || error.code === "ABORTED") throw error;
    if (error.code === "HOST_FAILED" && /ENOENT/.test(error.message)) {
      throw new VolumeError("HOST_FAILED", `${what}: ${mountProgram} is missing: install nfs-common`, {
        cause: error,
      });
    }
    throw error.message.startsWith(what)
      ? error
      : new VolumeError(error.code, `${what}: ${error.message}`, { cause: error });
  }
}

function refusal(what: string, words: string): VolumeError {
  const hasNfs = !/No such device|unknown filesystem/i.test(words);
  return hasNfs
    ? new VolumeError("UNAVAILABLE", `${what}: ${words}`)
    : new VolumeError("HOST_FAILED", `${what}: this host's kernel has no NFS: ${words}`);
}

/** Checks the server without the cache. @throws VolumeError UNAVAILABLE if it doesn't respond. */
export async function checkNfs(
  { server, path }: NfsExport,
  target: string,
  { children }: NfsOptions,
  signal: AbortSignal,
): Promise<void> {
  try {
    const result = await children.run("stat", ["-f", "-c", "%T", "--", target], {
      signal,
      timeoutMs: ANSWER_MS,
    });
    if (result.exitCode !== 0) throw new VolumeError("UNAVAILABLE", outputEndOf(result));
  } catch (error) {
    if (!(error instanceof VolumeError) || error.code === "ABORTED") throw error;
    throw new VolumeError("UNAVAILABLE", `nfs ${server}:${path} doesn't answer: ${error.message}`, {
      cause: error,
    });
  }
}
