import { randomUUID } from "node:crypto";
import { existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { listMounts, unmountBelow } from "../lib/mounts.ts";
import { run } from "../lib/run.ts";
import { gatewayOf, LAB_PREFIX_LENGTH, type LabHost } from "./lab-plan.ts";

/** The disk of one host, a file with the host's changes to the shared image. */
export interface HostDisk {
  /** The host's whole file system. */
  readonly root: string;
  /** A directory on the disk itself. containerd can't stack its layers on a stacked file system. */
  readonly containerd: string;
}

/** The file is sparse, so it uses only as much space as the host has written. */
const DISK_SIZE = "8G";

/** The file that is written last when a host is named. */
const ADDRESS_FILE = "etc/systemd/network/10-lab.network";

/** Attaches the disk in `dir`, creating it if there is none, and returns its paths. After a failure, it is not attached. */
export async function attachDisk(dir: string, image: string, host: LabHost): Promise<HostDisk> {
  const disk = join(dir, "disk");
  const base = join(dir, "base");
  const root = join(dir, "root");
  for (const mountPoint of [base, root]) mkdirSync(mountPoint, { recursive: true });
  if (!existsSync(disk)) await createDisk(disk);
  try {
    if (!listMounts().includes(root)) await mountDisk({ disk, base, root, image });
    if (!existsSync(join(root, ADDRESS_FILE))) nameHost(root, host);
  } catch (error) {
    for (const mountPoint of [root, base]) await unmountBelow(mountPoint);
    throw error;
  }
  return { root, containerd: containerdDir(base) };
}

async function createDisk(disk: string): Promise<void> {
  await run("truncate", ["--size", DISK_SIZE, `${disk}.partial`]);
  await run("mkfs.ext4", [
    ...["-q", "-F", "-m", "0", "-E", "lazy_itable_init=1,lazy_journal_init=1"],
    `${disk}.partial`,
  ]);
  await run("mv", [`${disk}.partial`, disk]);
}

interface DiskMounts {
  /** The file of the disk. */
  readonly disk: string;
  /** The mount point of the disk. */
  readonly base: string;
  /** The mount point of the host's file system. */
  readonly root: string;
  readonly image: string;
}

async function mountDisk({ disk, base, root, image }: DiskMounts): Promise<void> {
  // A boot that was killed may have mounted only the disk.
  await unmountBelow(base);
  await run("mount", ["-o", "loop", disk, base]);
  const [upper, work] = [join(base, "upper"), join(base, "work")];
  for (const part of [upper, work, containerdDir(base)]) mkdirSync(part, { recursive: true, mode: 0o755 });
  await run("mount", [
    ...["-t", "overlay", "-o", `lowerdir=${image},upperdir=${upper},workdir=${work}`],
    ...["overlay", root],
  ]);
}

function containerdDir(base: string): string {
  return join(base, "containerd");
}

/** Detaches and deletes all disks below the directory. */
export async function removeDisks(dir: string): Promise<void> {
  await unmountBelow(dir);
  rmSync(dir, { recursive: true, force: true, maxRetries: 3 });
}

/** Writes a new host's name, machine id and address to its file system. */
export function nameHost(root: string, host: LabHost): void {
  const { name, address } = host;
  writeFileSync(join(root, "etc/hostname"), `${name}\n`);
  writeFileSync(join(root, "etc/hosts"), `127.0.0.1 localhost\n::1 localhost\n${address} ${name}\n`);
  writeFileSync(join(root, "etc/machine-id"), `${randomUUID().replaceAll("-", "")}\n`);
  mkdirSync(dirname(join(root, ADDRESS_FILE)), { recursive: true });
  writeFileSync(
    join(root, ADDRESS_FILE),
    `[Match]
Name=host0 vec0

[Network]
Address=${address}/${LAB_PREFIX_LENGTH}
Gateway=${gatewayOf(host)}
`,
  );
}
