import { readdir, readFile } from "node:fs/promises";
import { basename } from "node:path";
import { type ChildRunner, wordsOf } from "./run-child.ts";
import { VolumeError } from "./volumes.ts";

const SYS_BLOCK = "/sys/block";

export interface LoopDevice {
  readonly device: string;
  readonly file: string;
}

/** Loop devices in use, with the files behind them. */
export async function listLoopDevices(): Promise<readonly LoopDevice[]> {
  const names = (await readdir(SYS_BLOCK)).filter((name) => /^loop\d+$/.test(name));
  const found = await Promise.all(
    names.map(async (name) => {
      const file = await backingFileOf(name);
      return file === undefined ? [] : [{ device: `/dev/${name}`, file }];
    }),
  );
  return found.flat();
}

/** Returns the file behind the loop device, or undefined when the device is free. */
async function backingFileOf(name: string): Promise<string | undefined> {
  const file = await readFile(`${SYS_BLOCK}/${name}/loop/backing_file`, "utf8").catch(() => undefined);
  // The kernel marks files that are deleted.
  return file?.trimEnd().replace(/ \(deleted\)$/, "");
}

/**
 * Returns a block device for the file: its present one, if any, because two for one file would destroy its content. Direct I/O,
 * where the file system below supports it, keeps data from being cached twice.
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
 * Detaches the file from the device now, or when the last mount of the device ends. A device that the kernel detached
 * by itself in the meantime, after its last unmount, counts as detached.
 */
export async function detachLoopDevice(
  { device, file }: LoopDevice,
  children: ChildRunner,
  signal: AbortSignal,
  readBackingFile = backingFileOf,
): Promise<void> {
  const result = await children.run("losetup", ["--detach", device], { signal });
  if (result.exitCode === 0 || (await readBackingFile(basename(device))) !== file) return;
  throw new VolumeError("HOST_FAILED", `losetup: ${wordsOf(result)}`);
}

/** Frees what is attached to files in the directory. */
export async function detachLoopDevicesOf(
  directory: string,
  children: ChildRunner,
  signal: AbortSignal,
): Promise<void> {
  for (const device of await listLoopDevices()) {
    if (device.file.startsWith(`${directory}/`)) await detachLoopDevice(device, children, signal);
  }
}
