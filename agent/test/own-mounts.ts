import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { argv, env, execPath, exit, getuid, pid } from "node:process";
import { isOfTheDead } from "../../hack/lib/own-network.ts";

const INSIDE = "FORAGE_TEST_MOUNTS";
const PREFIX = "forage-vt-";
const TOOLS = ["/usr/sbin/mkfs.ext4", "/usr/sbin/losetup", "/usr/bin/unshare", "/dev/loop-control"];

/** Returns the reason why tests of real mounts can't run on this machine, or undefined if they can. */
export function whyNoOwnMounts(): string | undefined {
  if (getuid?.() !== 0) return "needs root";
  const missing = TOOLS.find((path) => !existsSync(path));
  return missing === undefined ? undefined : `needs ${missing}`;
}

/**
 * Restarts the program in a mount namespace of its own, so that its mounts disappear however it ends, and exits with
 * the same code. In the restarted program, returns an empty directory, which the outer process or the next test
 * removes.
 */
export function enterOwnMounts(): string {
  const inside = env[INSIDE];
  if (inside !== undefined) return inside;
  removeDirectoriesOfTheDead();
  const directory = join(tmpdir(), `${PREFIX}${pid}`);
  mkdirSync(directory, { mode: 0o755 });
  let status: number | null = 1;
  try {
    const program = [execPath, ...process.execArgv, ...argv.slice(1)];
    const options = ["--mount", "--propagation=private", "--"];
    status = spawnSync("unshare", [...options, ...program], {
      env: { ...env, [INSIDE]: directory },
      stdio: "inherit",
    }).status;
  } finally {
    removeDirectory(directory);
  }
  exit(status ?? 1);
}

function removeDirectoriesOfTheDead(): void {
  for (const name of readdirSync(tmpdir()).filter((it) => it.startsWith(PREFIX))) {
    if (isOfTheDead(name.slice(PREFIX.length), 10)) removeDirectory(join(tmpdir(), name));
  }
}

/** Removes a directory. Mounts end with their namespace, but unmounted loop devices have to be detached. */
function removeDirectory(directory: string): void {
  for (const { device, file } of loopDevices()) {
    if (file.startsWith(`${directory}/`)) spawnSync("losetup", ["--detach", device]);
  }
  rmSync(directory, { recursive: true, force: true });
}

export function loopDevices(): readonly { readonly device: string; readonly file: string }[] {
  return readdirSync("/sys/block").flatMap((name) => {
    const file = backingFileOf(name);
    return file === undefined ? [] : [{ device: `/dev/${name}`, file }];
  });
}

/** Returns the file of a device, or undefined if the device is free or becomes free during the read. */
function backingFileOf(name: string): string | undefined {
  try {
    return readFileSync(`/sys/block/${name}/loop/backing_file`, "utf8").trimEnd();
  } catch {
    return undefined;
  }
}
