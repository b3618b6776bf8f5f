import { randomUUID } from "node:crypto";
import { existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
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

/** Attaches the disk in `dir`, creating it if there is none, and returns its paths. */
export async function attachDisk(dir: string, image: string, host: LabHost): Promise<HostDisk> {
  const disk = join(dir, "disk");
  const base = join(dir, "base");
  const root = join(dir, "root");
  const containerd = join(base, "containerd");
  if (listMounts().includes(root)) return { root, containerd };
  const isNew = !existsSync(disk);
  mkdirSync(base, { recursive: true });
  mkdirSync(root, { recursive: true });
  if (isNew) {
    await run("truncate", ["--size", DISK_SIZE, `${disk}.partial`]);
    await run("mkfs.ext4", [
      ...["-q", "-F", "-m", "0", "-E", "lazy_itable_init=1,lazy_journal_init=1"],
      `${disk}.partial`,
    ]);
    await run("mv", [`${disk}.partial`, disk]);
  }
  await run("mount", ["-o", "loop", disk, base]);
  const [upper, work] = [join(base, "upper"), join(base, "work")];
  for (const part of [upper, work, containerd]) mkdirSync(part, { recursive: true, mode: 0o755 });
  await run("mount", [
    ...["-t", "overlay", "-o", `lowerdir=${image},upperdir=${upper},workdir=${work}`],
    ...["overlay", root],
  ]);
  if (isNew) nameHost(root, host);
  return { root, containerd };
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
  mkdirSync(join(root, "etc/systemd/network"), { recursive: true });
  writeFileSync(
    join(root, "etc/systemd/network/10-lab.network"),
    `[Match]
Name=host0 vec0

[Network]
Address=${address}/${LAB_PREFIX_LENGTH}
Gateway=${gatewayOf(host)}
`,
  );
}
