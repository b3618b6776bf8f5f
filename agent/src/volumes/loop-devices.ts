import { readdir, readFile } from "node:fs/promises";
import { basename } from "node:path";
import { type ChildRunner, outputEndOf } from "./run-child.ts";
import { VolumeError } from "./volumes.ts";

const SYS_BLOCK = "/sys/block";

/** The kernel appends this to the path of a deleted file. */
const DELETED = " (deleted)";

export interface LoopDevice {
  readonly device: string;
  readonly file: string;
  readonly isDeleted: boolean;
}

/** Returns the loop devices in use, with the files behind them. */
export async function listLoopDevices(): Promise<readonly LoopDevice[]> {
  const names = (await readdir(SYS_BLOCK)).filter((name) => /^loop\d+$/.test(name));
  const found = await Promise.all(
    names.map(async (name) => {
      const file = await backingFileOf(name);
      return file === undefined ? [] : [{ device: `/dev/${name}`, ...file }];
    }),
  );
  return found.flat();
}

/** Returns the file behind the loop device, or undefined if the device is free. */
async function backingFileOf(name: string): Promise<Omit<LoopDevice, "device"> | undefined> {
  const shown = await readFile(`${SYS_BLOCK}/${name}/loop/backing_file`, "utf8").catch(() => undefined);
  const path = shown?.trimEnd();
  if (path === undefined) return undefined;
  return path.endsWith(DELETED)
    ? { file: path.slice(0, -DELETED.length), isDeleted: true }
    : { file: path, isDeleted: false };
}

/**
 * Returns a block device for the file. Reuses an existing device, because two devices for one file would destroy its
 * content. Uses direct I/O if the underlying file system supports it, to avoid caching data twice.
 */
export async function attachLoopDevice(
  file: string,
  children: ChildRunner,
  signal: AbortSignal,
): Promise<string> {
  const args = ["--find", "--show", "--nooverlap"];
  const direct = await children.run("losetup", [...args, "--direct-io=on", "--", file], { signal });
  const device =
    direct.exitCode === 0 ? direct.stdout : await children.must("losetup", [...args, "--", file], { signal });
  return device.trim();
}

/**
 * Detaches the file from the device now, or when the device's last mount ends. A device that the kernel has already
 * detached after its last unmount counts as detached.
 */
export async function detachLoopDevice(
  { device, file }: Pick<LoopDevice, "device" | "file">,
  children: ChildRunner,
  signal: AbortSignal,
  readBackingFile = async (name: string) => (await backingFileOf(name))?.file,
): Promise<void> {
  const result = await children.run("losetup", ["--detach", device], { signal });
  if (result.exitCode === 0 || (await readBackingFile(basename(device))) !== file) return;
  throw new VolumeError("HOST_FAILED", `losetup: ${outputEndOf(result)}`);
}

/** Detaches all devices of files in the directory. */
export async function detachLoopDevicesOf(
  directory: string,
  children: ChildRunner,
  signal: AbortSignal,
): Promise<void> {
  for (const device of await listLoopDevices()) {
    if (device.file.startsWith(`${directory}/`)) await detachLoopDevice(device, children, signal);
  }
}

/**
 * Detaches devices of deleted files in the directory. A program of a killed agent may attach a device to a file that
 * the next agent has just removed.
 */
export async function detachDeletedFilesOf(
  directory: string,
  children: ChildRunner,
  signal: AbortSignal,
): Promise<void> {
  for (const device of await listLoopDevices()) {
    if (device.isDeleted && device.file.startsWith(`${directory}/`))
      await detachLoopDevice(device, children, signal);
  }
}
