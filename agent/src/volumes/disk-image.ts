import { randomUUID } from "node:crypto";
import { chmod, open, readdir, rename, rm, rmdir, statfs } from "node:fs/promises";
import { dirname, join } from "node:path";
import { attachLoopDevice, detachLoopDevice, listLoopDevices } from "./loop-devices.ts";
import { type Mounts, makeMountPoint } from "./mounts.ts";
import { type ChildRunner, wordsOf } from "./run-child.ts";
import { VolumeError } from "./volumes.ts";

/**
 * `scratch`: sparse, so that a limit takes no room until it is used, and without a journal: when the host's disk is full, an ext4
 * with a journal turns read-only for good, one without goes on once there is room. `durable`: its room is set aside when it is made,
 * so that this can't happen to it, and journaled. `thin`: sparse like `scratch` and journaled like `durable`, for content that must
 * survive a crash but would take too much room in full.
 */
export type ImageKind = "scratch" | "durable" | "thin";

// Less than this and the file system's own tables would be most of it.
const SIZE_BYTES_LEAST = 1024 * 1024;
const MEBIBYTE = 1024 * 1024;
const GIBIBYTE = 1024 * MEBIBYTE;
const SIZE_STEP_BYTES = MEBIBYTE / 4;
const BLOCK_BYTES = 4096;
const INODE_BYTES = 256;
/** One inode per so many bytes. Small volumes tend to hold small files. */
const BYTES_PER_INODE = { small: 8_192, large: 16_384 };
const SMALL_BYTES = 512 * MEBIBYTE;
/** e2fsck: 0 clean, 1 repaired, 2 repaired and (for a root file system) to be rebooted. */
const REPAIRED = [0, 1, 2];
// Reads the tables of what is in use; a full file system of a terabyte takes minutes.
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

/** The start of the name of a file with which loop devices are tried. */
const TRIAL_PREFIX = "loop-trial-";

/** Removes what a trial of an agent that was killed has left. */
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

/** True if the kernel lets us have loop devices at all. */
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

/** Makes the image; it has its name only once it is whole. */
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
 * Mounts an existing image, after a check if its last mount didn't end cleanly.
 * @returns false for a scratch image beyond repair, which has to be recreated.
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
    // Freed room goes back to the host, where none was set aside.
    const options = ["nodev", "noinit_itable", ...(kind === "durable" ? [] : ["discard"])];
    await mounts.mount({ type: "ext4", source: device, target, options }, signal);
  } finally {
    // From now on the kernel frees the device with its mount, even if the agent is gone.
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
  throw new VolumeError("DAMAGED", `${file}: needs e2fsck by hand: ${wordsOf(result)}`);
}

/** A new file system's root belongs to root alone and holds `lost+found`, which programs that want an empty directory stumble over. */
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
  throw new VolumeError(isFull ? "NO_ROOM" : "HOST_FAILED", `fallocate: ${wordsOf(result)}`);
}

function mkfsOptions({ kind, sizeBytes }: DiskImage): readonly string[] {
  const features =
    kind === "scratch"
      ? ["-O", "^has_journal,^resize_inode"]
      : ["-J", `size=${journalBytes(sizeBytes) / MEBIBYTE}`];
  return [
    ...["-q", "-F", "-m", "0", "-b", String(BLOCK_BYTES), "-I", String(INODE_BYTES)],
    ...["-i", String(bytesPerInode(sizeBytes)), ...features],
    // Neither zeroed now nor in the background: the file reads as zeros already.
    ...["-E", "lazy_itable_init=1,lazy_journal_init=1,nodiscard,root_owner=0:0"],
  ];
}

/** The file must be larger than what fits into the file system, by its own tables. Rounded up: the limit may be used in full. */
export function imageBytes({ kind, sizeBytes }: DiskImage): number {
  const wanted = Math.max(sizeBytes, SIZE_BYTES_LEAST);
  const inodeTables = (wanted / bytesPerInode(wanted)) * INODE_BYTES;
  const journal = kind === "scratch" ? 0 : journalBytes(sizeBytes);
  // ext4 itself keeps back a fiftieth, 4096 blocks at most, for its own delayed needs.
  const reserve = Math.min(wanted / 48, 4_200 * BLOCK_BYTES);
  // Block groups of 128 MiB, each with bitmaps and descriptors; what durable ones need to be able to grow.
  const groups = Math.ceil(wanted / (128 * MEBIBYTE));
  const tables = groups * 8 * BLOCK_BYTES + (kind !== "scratch" ? wanted / 500 + 3 * MEBIBYTE : 0);
  const sum = wanted * 1.002 + inodeTables * 1.02 + journal + reserve + tables;
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
