import { readdir, readFile } from "node:fs/promises";
import type { ChildRunner } from "./run-child.ts";

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
      const file = await readFile(`${SYS_BLOCK}/${name}/loop/backing_file`, "utf8").catch(() => undefined);
      // The kernel marks files that are deleted.
      return file === undefined
        ? []
        : [{ device: `/dev/${name}`, file: file.trimEnd().replace(/ \(deleted\)$/, "") }];
    }),
  );
  return found.flat();
}

/**
 * Gives a block device for the file: the one it has, if any, since two for one file would destroy what is on it. Direct I/O,
 * where the file system below can, keeps data from being cached twice.
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

/** Frees the device now, or as soon as nobody has it mounted any more. */
export async function detachLoopDevice(
  device: string,
  children: ChildRunner,
  signal: AbortSignal,
): Promise<void> {
  await children.must("losetup", ["--detach", device], { signal });
}

/** Frees what is attached to files in the directory. */
export async function detachLoopDevicesOf(
  directory: string,
  children: ChildRunner,
  signal: AbortSignal,
): Promise<void> {
  for (const { device, file } of await listLoopDevices()) {
    if (file.startsWith(`${directory}/`)) await detachLoopDevice(device, children, signal);
  }
}
