import { randomUUID } from "node:crypto";
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { unmountBelow } from "../lib/mounts.ts";
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
  /** The key whose private half lets commands in. */
  readonly publicKey: string;
}

/** Sparse: it takes what the host has written. */
const DISK_SIZE = "8G";

/** Returns the path of the host's disk, made from the image the first time. */
export async function ensureUmlDisk(options: UmlDiskOptions): Promise<string> {
  const { dir, image, host } = options;
  const disk = join(dir, "disk");
  if (existsSync(disk)) return disk;
  mkdirSync(dir, { recursive: true });
  await run("cp", ["--sparse=always", await ensureBaseDisk(image), `${disk}.partial`]);
  const root = join(dir, "mount");
  mkdirSync(root, { recursive: true });
  await run("mount", ["-o", "loop", `${disk}.partial`, root]);
  try {
    nameHost(root, host);
    await openControl(root, options);
  } finally {
    await unmountBelow(root);
  }
  renameSync(`${disk}.partial`, disk);
  return disk;
}

/** Returns the path of a disk with the image's file system, made the first time. */
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

/** Lets commands in by SSH, on the network of commands only, and shows the host the packages. */
async function openControl(root: string, { host, packages, publicKey }: UmlDiskOptions): Promise<void> {
  const address = controlAddress(host);
  writeFileSync(
    join(root, "etc/systemd/network/20-control.network"),
    `[Match]\nName=vec1\n\n[Network]\nAddress=${address}/${LAB_PREFIX_LENGTH}\n`,
  );
  mkdirSync(join(root, "root/.ssh"), { recursive: true, mode: 0o700 });
  writeFileSync(join(root, "root/.ssh/authorized_keys"), readFileSync(publicKey), { mode: 0o600 });
  writeFileSync(
    join(root, "etc/ssh/sshd_config.d/lab.conf"),
    "ListenAddress 0.0.0.0\nUseDNS no\nUsePAM no\nMaxSessions 100\nMaxStartups 100\n",
  );
  rmSync(join(root, "etc/systemd/system/ssh.service"));
  await run("ssh-keygen", ["-A", "-f", root]);
  mkdirSync(join(root, PACKAGES_DIR), { recursive: true });
  appendFileSync(join(root, "etc/fstab"), `none ${PACKAGES_DIR} hostfs ${packages},ro 0 0\n`);
}
