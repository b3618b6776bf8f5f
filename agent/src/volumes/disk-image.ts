import { randomUUID } from "node:crypto";
import { chmod, open, readdir, rename, rm, rmdir, statfs } from "node:fs/promises";
import { dirname, join } from "node:path";
import { attachLoopDevice, detachLoopDevice, listLoopDevices } from "./loop-devices.ts";
import { type Mounts, makeMountPoint } from "./mounts.ts";
import { type ChildRunner, outputEndOf } from "./run-child.ts";
import { VolumeError } from "./volumes.ts";

/**
 * The kind of a disk image. `scratch` is sparse, so that a limit takes no room until it is used, and has no journal:
 * when the host's disk is full, an ext4 with a journal becomes read-only permanently, and one without continues once
 * there is room. `durable` allocates its room on creation, so that a full disk can't affect it, and has a journal.
 * `thin` is sparse like `scratch` and has a journal like `durable`, for content that must survive a crash but would
 * take too much room in full.
 */
export type ImageKind = "scratch" | "durable" | "thin";

// In a smaller image the file system's own tables would take most of the space.
const SIZE_BYTES_LEAST = 1024 * 1024;
const MEBIBYTE = 1024 * 1024;
const GIBIBYTE = 1024 * MEBIBYTE;
const SIZE_STEP_BYTES = MEBIBYTE / 4;
const BLOCK_BYTES = 4096;
const INODE_BYTES = 256;
/** The number of bytes for each inode. Small volumes tend to contain small files. */
const BYTES_PER_INODE = { small: 8_192, large: 16_384 };
const SMALL_BYTES = 512 * MEBIBYTE;
/** Exit codes of e2fsck: 0 clean, 1 repaired, 2 repaired and (for a root file system) reboot required. */
const REPAIRED = [0, 1, 2];
// Reads the tables of the blocks in use; a full file system of a terabyte takes minutes.
const CHECK_MS = 1_800_000;

export interface DiskImageOptions {
  readonly children: ChildRunner;
  readonly mounts: Mounts;
}

export interface DiskImage {
  readonly file: string;
  readonly kind: ImageKind;
  /** The usable size of the file system in the image. */
  readonly sizeBytes: number;
}

/** The start of the name of a file with which loop devices are tested. */
const TRIAL_PREFIX = "loop-trial-";

/** Removes what the test of a killed agent has left. */
export async function removeTrials(
  directory: string,
  { children }: Pick<DiskImageOptions, "children">,
  signal: AbortSignal,
): Promise<void> {
  const prefix = join(directory, TRIAL_PREFIX);
  for (const device of await listLoopDevices())
    if (device.file.startsWith(prefix)) await detachLoopDevice(device, children, signal);
  for (const name of await readdir(directory))
    if (name.startsWith(TRIAL_PREFIX)) await rm(join(directory, name), { force: true });
}

/** Reports whether the kernel allows loop devices at all. */
export async function canUseImages(
  directory: string,
  { children }: DiskImageOptions,
  signal: AbortSignal,
): Promise<boolean> {
  const file = join(directory, `${TRIAL_PREFIX}${randomUUID()}`);
  await makeEmpty(file, BLOCK_BYTES);
  try {
    const device = await attachLoopDevice(file, children, signal);
    await detachLoopDevice({ device, file }, children, signal);
    return true;
  } catch (error) {
    if (error instanceof VolumeError && error.code === "HOST_FAILED") return false;
    throw error;
  } finally {
    await rm(file, { force: true });
  }
}

/** Creates the image. It gets its name only once it is complete. */
export async function makeImage(
  image: DiskImage,
  { children }: DiskImageOptions,
  signal: AbortSignal,
): Promise<void> {
  const unfinished = `${image.file}.new`;
  const fileBytes = imageBytes(image);
  try {
    await rm(unfinished, { force: true });
    if (image.kind === "durable") await checkRoom(dirname(unfinished), fileBytes);
    await makeEmpty(unfinished, fileBytes);
    if (image.kind === "durable") await setRoomAside(unfinished, fileBytes, children, signal);
    await children.must("mkfs.ext4", [...mkfsOptions(image), "--", unfinished], { signal });
    await rename(unfinished, image.file);
  } catch (error) {
    await rm(unfinished, { force: true });
    throw error;
  }
}

/**
 * Mounts an existing image, after a check if it was not unmounted cleanly. @returns false for a scratch image beyond
 * repair, which has to be recreated.
 */
export async function mountImage(
  { file, kind }: DiskImage,
  target: string,
  { children, mounts }: DiskImageOptions,
  signal: AbortSignal,
): Promise<boolean> {
  const isAttached = (await listLoopDevices()).some((it) => it.file === file);
  if (!isAttached && !(await repair(file, kind, children, signal))) return false;
  await makeMountPoint(target, "directory");
  const device = await attachLoopDevice(file, children, signal);
  try {
    // Freed room is returned to the host, unless it was allocated on creation.
    const options = ["nodev", "noinit_itable", ...(kind === "durable" ? [] : ["discard"])];
    await mounts.mount({ type: "ext4", source: device, target, options }, signal);
  } finally {
    // From now on the kernel frees the device with its mount, even without an agent.
    await detachLoopDevice({ device, file }, children, new AbortController().signal);
  }
  await openUp(target);
  return true;
}

async function repair(
  file: string,
  kind: ImageKind,
  children: ChildRunner,
  signal: AbortSignal,
): Promise<boolean> {
  const result = await children.run("e2fsck", ["-p", "--", file], { signal, timeoutMs: CHECK_MS });
  if (result.exitCode !== undefined && REPAIRED.includes(result.exitCode)) return true;
  if (kind === "scratch") return false;
  throw new VolumeError("DAMAGED", `${file}: needs e2fsck by hand: ${outputEndOf(result)}`);
}

/**
 * Opens the root of a new file system to all users and removes `lost+found`. The root belongs to root alone, and
 * programs that require an empty directory fail with `lost+found`.
 */
async function openUp(root: string): Promise<void> {
  const isNew = await rmdir(join(root, "lost+found")).then(
    () => true,
    () => false,
  );
  if (isNew) await chmod(root, 0o777);
}

async function makeEmpty(file: string, bytes: number): Promise<void> {
  const handle = await open(file, "w", 0o600);
  try {
    await handle.truncate(bytes);
  } finally {
    await handle.close();
  }
}

async function checkRoom(directory: string, bytes: number): Promise<void> {
  const { bavail, bsize } = await statfs(directory);
  if (bavail * bsize < bytes) {
    throw new VolumeError(
      "NO_ROOM",
      `${toMebibytes(bytes)} are needed, ${toMebibytes(bavail * bsize)} are free`,
    );
  }
}

async function setRoomAside(
  file: string,
  bytes: number,
  children: ChildRunner,
  signal: AbortSignal,
): Promise<void> {
  const result = await children.run("fallocate", ["-l", String(bytes), "--", file], { signal });
  if (result.exitCode === 0 || /not supported/i.test(result.stderr)) return;
  const isFull = /no space/i.test(result.stderr);
  throw new VolumeError(isFull ? "NO_ROOM" : "HOST_FAILED", `fallocate: ${outputEndOf(result)}`);
}

function mkfsOptions({ kind, sizeBytes }: DiskImage): readonly string[] {
  const features =
    kind === "scratch"
      ? ["-O", "^has_journal,^resize_inode"]
      : ["-J", `size=${journalBytes(sizeBytes) / MEBIBYTE}`];
  return [
    ...["-q", "-F", "-m", "0", "-b", String(BLOCK_BYTES), "-I", String(INODE_BYTES)],
    ...["-i", String(bytesPerInode(sizeBytes)), ...features],
    // Tables are zeroed neither now nor later, because the file already reads as zeros.
    ...["-E", "lazy_itable_init=1,lazy_journal_init=1,nodiscard,root_owner=0:0"],
  ];
}

/**
 * Returns the size of the image's file, which exceeds the usable size by the file system's own tables. Rounded up, so
 * that the limit can be used in full.
 */
export function imageBytes({ kind, sizeBytes }: DiskImage): number {
  const desired = Math.max(sizeBytes, SIZE_BYTES_LEAST);
  const inodeTables = (desired / bytesPerInode(desired)) * INODE_BYTES;
  const journal = kind === "scratch" ? 0 : journalBytes(sizeBytes);
  // ext4 reserves a fiftieth, at most 4096 blocks, for delayed allocation.
  const reserve = Math.min(desired / 48, 4_200 * BLOCK_BYTES);
  // Block groups have 128 MiB each, with bitmaps and descriptors. Durable images need more, to be able to grow.
  const groups = Math.ceil(desired / (128 * MEBIBYTE));
  const tables = groups * 8 * BLOCK_BYTES + (kind !== "scratch" ? desired / 500 + 3 * MEBIBYTE : 0);
  const sum = desired * 1.002 + inodeTables * 1.02 + journal + reserve + tables;
  return Math.ceil(sum / SIZE_STEP_BYTES) * SIZE_STEP_BYTES;
}

function bytesPerInode(sizeBytes: number): number {
  return sizeBytes < SMALL_BYTES ? BYTES_PER_INODE.small : BYTES_PER_INODE.large;
}

function journalBytes(sizeBytes: number): number {
  if (sizeBytes < 128 * MEBIBYTE) return 4 * MEBIBYTE;
  return sizeBytes < GIBIBYTE ? 16 * MEBIBYTE : 64 * MEBIBYTE;
}

export function toMebibytes(bytes: number): string {
  return `${Math.ceil(bytes / MEBIBYTE)}Mi`;
}
