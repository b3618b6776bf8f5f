import { chmod, lstat, mkdir, rename, rm } from "node:fs/promises";
import { canUseImages, type DiskImageOptions, type ImageKind, makeImage, mountImage } from "./disk-image.ts";

export interface LimitedDirectory {
  /** `<home>.img` if a separate file system enforces the limit, else the directory itself. */
  readonly home: string;
  /** The mount point of the image. */
  readonly mountPoint: string;
  readonly kind: ImageKind;
  /** The limit in bytes. Undefined: none. */
  readonly limitBytes: number | undefined;
}

export interface LimitedDirectoryOptions extends DiskImageOptions {
  /** Reports whether this host allows loop devices. Checked once. */
  readonly imagesWork: (signal: AbortSignal) => Promise<boolean>;
  readonly warn: (event: string, fields: Readonly<Record<string, unknown>>) => void;
}

export interface ReadyDirectory {
  readonly path: string;
  /** Whether a file system enforces the limit. If not, the directory's use has to be measured. */
  readonly isEnforced: boolean;
}

/**
 * Creates a directory with a size limit. Its kind never changes, because replacing an image by a directory would hide
 * its content.
 */
export async function makeLimitedDirectory(
  { home, mountPoint, kind, limitBytes }: LimitedDirectory,
  options: LimitedDirectoryOptions,
  signal: AbortSignal,
): Promise<ReadyDirectory> {
  const file = `${home}.img`;
  const hasImage = await exists(file);
  if (hasImage || (limitBytes !== undefined && !(await exists(home)) && (await options.imagesWork(signal)))) {
    if (await options.mounts.isMounted(mountPoint)) return { path: mountPoint, isEnforced: true };
    const image = { file, kind, sizeBytes: limitBytes ?? 0 };
    if (!hasImage) await makeImage(image, options, signal);
    if (!(await mountImage(image, mountPoint, options, signal))) {
      options.warn("scratch-volume-made-anew", { file });
      await rm(file);
      await makeImage(image, options, signal);
      await mountImage(image, mountPoint, options, signal);
    }
    return { path: mountPoint, isEnforced: true };
  }
  await makeOpenDirectory(home);
  return { path: home, isEnforced: limitBytes === undefined };
}

/** Returns a function that tests loop devices once, when first called, and then repeats the result. */
export function imagesTrial(
  directory: string,
  options: DiskImageOptions,
  warn: LimitedDirectoryOptions["warn"],
): LimitedDirectoryOptions["imagesWork"] {
  let found: boolean | undefined;
  return async (signal) => {
    if (found === undefined) {
      found = await canUseImages(directory, options, signal);
      if (!found) warn("no-loop-devices", { effect: "limits of volumes are measured, not enforced" });
    }
    return found;
  };
}

/**
 * Creates a directory that all users may write to, because containers run as any user. Its parent is closed to other
 * users.
 */
async function makeOpenDirectory(path: string): Promise<void> {
  if (await exists(path)) return;
  const unfinished = `${path}.new`;
  await rm(unfinished, { recursive: true, force: true });
  await mkdir(unfinished, { recursive: true });
  await chmod(unfinished, 0o777);
  await rename(unfinished, path);
}

export async function exists(path: string): Promise<boolean> {
  return lstat(path).then(
    () => true,
    () => false,
  );
}
