import { randomUUID } from "node:crypto";
import { chmodSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { run } from "../lib/run.ts";
import { nameHost } from "./host-disk.ts";
import { PACKAGES_DIR } from "./host-driver.ts";
import { controlAddress, LAB_PREFIX_LENGTH, type LabHost } from "./lab-plan.ts";

export interface UmlDiskOptions {
  /** The directory of the host. */
  readonly dir: string;
  /** The image's file system, from which `baseDisk` is made once. */
  readonly image: string;
  readonly host: LabHost;
  readonly packages: string;
  /** The public key that authorizes commands over SSH. */
  readonly publicKey: string;
}

/** The file is sparse, so it uses only as much space as the host has written. */
const DISK_SIZE = "8G";

/**
 * Copies files to a disk, in a mount namespace of its own. A namespace that another process makes meanwhile would keep a copy of the
 * mount, and write to the disk after the host has booted.
 */
const WRITE_FILES = `mount -o loop "$1" "$2"
cp --archive "$3/." "$2/"
rm "$2/etc/systemd/system/ssh.service"
umount "$2"`;

/** Returns the path of the host's disk. Makes it from the image the first time. */
export async function ensureUmlDisk(options: UmlDiskOptions): Promise<string> {
  const { dir, image, host } = options;
  const disk = join(dir, "disk");
  if (existsSync(disk)) return disk;
  mkdirSync(dir, { recursive: true });
  await run("cp", ["--sparse=always", await ensureBaseDisk(image), `${disk}.partial`]);
  const files = join(dir, "files");
  mkdirSync(join(files, "root/.ssh"), { recursive: true, mode: 0o700 });
  chmodSync(files, 0o755);
  mkdirSync(join(files, "etc/ssh/sshd_config.d"), { recursive: true });
  nameHost(files, host);
  await openControl(files, options);
  const root = join(dir, "mount");
  mkdirSync(root, { recursive: true });
  await run("unshare", ["--mount", "sh", "-euc", WRITE_FILES, "sh", `${disk}.partial`, root, files]);
  rmSync(files, { recursive: true });
  renameSync(`${disk}.partial`, disk);
  return disk;
}

/** Returns the path of a disk with the image's file system. Makes it the first time. */
export async function ensureBaseDisk(image: string): Promise<string> {
  const base = `${image}.ext4`;
  if (existsSync(base)) return base;
  const partial = `${base}.${randomUUID()}`;
  try {
    await run("mke2fs", [
      ...["-q", "-t", "ext4", "-m", "0", "-E", "lazy_itable_init=1,lazy_journal_init=1"],
      ...["-d", image, partial, DISK_SIZE],
    ]);
    renameSync(partial, base);
  } finally {
    rmSync(partial, { force: true });
  }
  return base;
}

/** Configures SSH for commands, on the network of commands only, and the mount of the packages. */
async function openControl(
  root: string,
  { host, image, packages, publicKey }: UmlDiskOptions,
): Promise<void> {
  const address = controlAddress(host);
  writeFileSync(
    join(root, "etc/systemd/network/20-control.network"),
    `[Match]\nName=vec1\n\n[Network]\nAddress=${address}/${LAB_PREFIX_LENGTH}\n`,
  );
  writeFileSync(join(root, "root/.ssh/authorized_keys"), readFileSync(publicKey), { mode: 0o600 });
  writeFileSync(
    join(root, "etc/ssh/sshd_config.d/lab.conf"),
    "ListenAddress 0.0.0.0\nUseDNS no\nUsePAM no\nMaxSessions 100\nMaxStartups 100\n",
  );
  await run("ssh-keygen", ["-A", "-f", root]);
  mkdirSync(join(root, PACKAGES_DIR), { recursive: true });
  const fstab = readFileSync(join(image, "etc/fstab"), "utf8");
  writeFileSync(join(root, "etc/fstab"), `${fstab}none ${PACKAGES_DIR} hostfs ${packages},ro 0 0\n`);
}
