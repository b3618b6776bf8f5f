import { createHash } from "node:crypto";
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { goArchitecture } from "../lib/architecture.ts";
import { cacheDir } from "../lib/cache-dir.ts";
import { type HostTool, installMissing } from "../lib/host-tools.ts";
import { unmountBelow } from "../lib/mounts.ts";
import { run } from "../lib/run.ts";
import { pruneImages } from "./prune-images.ts";

/** A plain Debian, as an operator's host is before Forage is installed. */
export interface HostImage {
  /** The file system. It is read-only: hosts write to their own disks. */
  readonly root: string;
  /** The Debian packages on which Forage's packages depend, so hosts need no other network. */
  readonly dependencies: string;
}

const SUITE = "bookworm";

/** The Debian packages of a host, beside the essential ones. */
const BASE = [
  ...["systemd-sysv", "dbus", "udev", "kmod", "iproute2", "iputils-ping", "procps", "ca-certificates"],
  ...["curl", "less", "sudo", "zstd", "apt", "debconf", "openssh-server"],
];

/**
 * The packages that those of Forage depend on or recommend. `dependencies` contains them and their own dependencies.
 */
const DEPENDENCIES = [
  ...["containerd", "runc", "containernetworking-plugins", "nftables", "conntrack", "mount", "e2fsprogs"],
  ...["git", "busybox-static", "ndisc6", "libndp-tools", "libstdc++6", "libgcc-s1", "faketime"],
];

/**
 * Excluded paths, which make images much smaller. The rules are removed before Forage's packages are installed, so
 * these are complete.
 */
const LEFT_OUT = ["/usr/share/doc/*", "/usr/share/man/*", "/usr/share/locale/*"];

const APT_SETTINGS = `APT::Install-Recommends "false";
DPkg::Options { "--force-unsafe-io"; };
`;

/**
 * A unit that makes cgroups of version 1 writable, which are read-only in a container. Without effect on a host with
 * its own kernel.
 */
const WRITABLE_CGROUPS = `[Unit]
Description=Writable cgroups, as hosts have them
DefaultDependencies=no
Before=sysinit.target
ConditionVirtualization=container

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/bin/sh -c 'for dir in /sys/fs/cgroup/*/; do mount -o remount,bind,rw "$dir" || true; done'

[Install]
WantedBy=sysinit.target
`;

/** Settings of a journal that is complete after a host is ready, also after a power failure. */
const JOURNAL = "[Journal]\nStorage=persistent\nSyncIntervalSec=1s\n";

const IMAGE_TOOLS: readonly HostTool[] = [
  { package: "mmdebstrap", isThere: () => existsSync("/usr/bin/mmdebstrap") },
];
/** It takes a minute on two processors, and more than five were seen on two with ten times their work: this is for a mirror that hangs. */
const BUILD_LIMIT_SECONDS = 15 * 60;
/** The time in which an ended build unmounts its mounts. */
const CLEAN_UP_SECONDS = 30;
/** The few packages of this size have most of the content. Debian compresses them with xz. */
const LARGE_PACKAGE_BYTES = 1024 ** 2;
const IMAGES = "lab-images";
/** The number of images to keep, for several checkouts with different contents on one machine. */
const KEPT_IMAGES = 3;

/** Returns the image, and builds it unless the cache has one of the same content. */
export async function ensureHostImage(report: (detail: string) => void): Promise<HostImage> {
  const images = join(cacheDir(), IMAGES);
  const dir = join(images, contentHash());
  if (!existsSync(dir)) {
    await installMissing(IMAGE_TOOLS, { report });
    report(`building a Debian ${SUITE} image (once; about a minute)`);
    mkdirSync(images, { recursive: true });
    const partial = mkdtempSync(join(images, "partial-"));
    try {
      await buildImage(partial);
      renameSync(partial, dir);
    } catch (error) {
      await unmountBelow(partial);
      rmSync(partial, { recursive: true, force: true });
      // Another run may have been faster.
      if (!existsSync(dir)) throw error;
    }
  }
  const now = new Date();
  utimesSync(dir, now, now);
  await pruneImages(images, KEPT_IMAGES, now.getTime());
  return { root: join(dir, "root"), dependencies: join(dir, "dependencies") };
}

async function buildImage(dir: string): Promise<void> {
  chmodSync(dir, 0o755);
  const root = join(dir, "root");
  const dependencies = join(dir, "dependencies");
  mkdirSync(dependencies);
  const archives = '"$1/var/cache/apt/archives"';
  const download = `chroot "$1" apt-get install --yes --no-install-recommends --download-only ${DEPENDENCIES.join(" ")}`;
  // When it is ended by a signal that it can handle, it unmounts its mounts.
  await run(
    "timeout",
    [
      ...[`--kill-after=${CLEAN_UP_SECONDS}`, String(BUILD_LIMIT_SECONDS), "mmdebstrap"],
      ...["--variant=minbase", `--include=${BASE.join(",")}`, "--aptopt=Acquire::Languages none"],
      ...LEFT_OUT.map((path) => `--dpkgopt=path-exclude=${path}`),
      "--dpkgopt=force-unsafe-io",
      `--customize-hook=${download}`,
      `--customize-hook=find ${archives} -name '*.deb' -exec mv -t '${dependencies}' {} +`,
      ...[SUITE, root],
    ],
    { timeoutMs: (BUILD_LIMIT_SECONDS + 2 * CLEAN_UP_SECONDS) * 1_000 },
  );
  adaptRoot(root);
  for (const file of readdirSync(dependencies))
    await recompress(join(dependencies, file), join(dir, "package"));
}

/** Replaces a large package with one of the same content that every host unpacks in a fraction of the processor time. */
async function recompress(path: string, emptyDir: string): Promise<void> {
  if (statSync(path).size < LARGE_PACKAGE_BYTES) return;
  await run("dpkg-deb", ["--raw-extract", path, emptyDir]);
  await run("dpkg-deb", ["-Zzstd", "-z3", "--build", emptyDir, path]);
  rmSync(emptyDir, { recursive: true });
}

function adaptRoot(root: string): void {
  const write = (path: string, text: string): void => {
    mkdirSync(join(root, path, ".."), { recursive: true });
    writeFileSync(join(root, path), text);
  };
  const link = (path: string, target: string): void => {
    rmSync(join(root, path), { force: true });
    mkdirSync(join(root, path, ".."), { recursive: true });
    symlinkSync(target, join(root, path));
  };
  write("etc/apt/sources.list", "");
  // Hosts of a lab reach no name server.
  write("etc/resolv.conf", "");
  write("etc/apt/apt.conf.d/90lab", APT_SETTINGS);
  rmSync(join(root, "etc/dpkg/dpkg.cfg.d/99mmdebstrap"), { force: true });
  write("etc/systemd/journald.conf.d/90-lab.conf", JOURNAL);
  write("etc/systemd/system/lab-cgroups.service", WRITABLE_CGROUPS);
  link("etc/systemd/system/sysinit.target.wants/lab-cgroups.service", "../lab-cgroups.service");
  link(
    "etc/systemd/system/multi-user.target.wants/systemd-networkd.service",
    "/lib/systemd/system/systemd-networkd.service",
  );
  // These units request, or wait for, something that a lab lacks.
  for (const unit of ["systemd-firstboot.service", "systemd-networkd-wait-online.service", "apt-daily.timer"])
    link(`etc/systemd/system/${unit}`, "/dev/null");
  // Every host makes its own keys.
  for (const name of readdirSync(join(root, "etc/ssh")))
    if (name.startsWith("ssh_host_")) rmSync(join(root, "etc/ssh", name));
  link("etc/systemd/system/ssh.service", "/dev/null");
  write("etc/machine-id", "");
}

function contentHash(): string {
  return createHash("sha256")
    .update(readFileSync(import.meta.filename))
    .update(goArchitecture())
    .digest("hex")
    .slice(0, 16);
}

/** Copies the image's Debian packages to a directory with others. */
export function copyDependencies(image: HostImage, to: string): void {
  mkdirSync(to, { recursive: true });
  for (const file of readdirSync(image.dependencies))
    copyFileSync(join(image.dependencies, file), join(to, file));
}
