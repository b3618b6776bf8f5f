import {
  chmod,
  chown,
  lstat,
  mkdir,
  readdir,
  readFile,
  readlink,
  rename,
  rm,
  symlink,
  unlink,
  writeFile,
} from "node:fs/promises";
import { dirname, join } from "node:path";
import type { PlannedFile } from "./plan-files.ts";

const DATA = "..data";
const NEXT_DATA = "..data_next";
// The directories that DATA points to in turn.
const GENERATION = /^\.\.gen-\d+$/;

export interface FilesOwner {
  /** The owner of the files. Undefined: root. */
  readonly uid?: number;
  /** The group of all files, which gets read access. Undefined: root, and the modes alone decide. */
  readonly gid?: number;
}

/**
 * Makes a directory contain these files, as Kubernetes does: the files are in a separate directory, `..data` is a link
 * to it, and the visible names are links through `..data`. Every mount of the directory therefore changes atomically.
 * @returns false if nothing had to be changed.
 */
export async function writeFilesVolume(
  directory: string,
  files: readonly PlannedFile[],
  owner: FilesOwner | undefined,
): Promise<boolean> {
  await mkdir(directory, { recursive: true });
  // Set explicitly, because the process's umask would restrict it and containers run as any user.
  await own(directory, 0o755, owner);
  const current = await currentGeneration(directory);
  const isCurrent = current !== undefined && (await holds(join(directory, current), files, owner));
  if (!isCurrent) await replace(directory, current, files, owner);
  const links = new Set(files.map(({ path }) => path.split("/", 1)[0] ?? path));
  await link(directory, links);
  await sweep(directory, links);
  return !isCurrent;
}

async function replace(
  directory: string,
  current: string | undefined,
  files: readonly PlannedFile[],
  owner: FilesOwner | undefined,
): Promise<void> {
  const number = current === undefined ? 1 : Number(current.slice("..gen-".length)) + 1;
  const next = `..gen-${number}`;
  const target = join(directory, next);
  // The remains of an interrupted write.
  await rm(target, { recursive: true, force: true });
  await mkdir(target);
  await own(target, 0o755, owner);
  for (const file of files) await writeOne(target, file, owner);
  await rm(join(directory, NEXT_DATA), { force: true });
  await symlink(next, join(directory, NEXT_DATA));
  await rename(join(directory, NEXT_DATA), join(directory, DATA));
}

async function writeOne(
  generation: string,
  { path, content, mode }: PlannedFile,
  owner: FilesOwner | undefined,
): Promise<void> {
  const file = join(generation, path);
  const parents: string[] = [];
  for (let parent = dirname(path); parent !== "."; parent = dirname(parent)) parents.unshift(parent);
  for (const parent of parents) {
    await mkdir(join(generation, parent), { recursive: true });
    await own(join(generation, parent), 0o755, owner);
  }
  await writeFile(file, content, { flag: "wx", mode: 0o600 });
  await own(file, fileMode(mode, owner), owner);
}

/** Returns the mode with read access for the group, as Kubernetes does for `fs_group`. */
function fileMode(mode: number, owner: FilesOwner | undefined): number {
  return owner?.gid === undefined ? mode : mode | 0o440;
}

async function own(path: string, mode: number, owner: FilesOwner | undefined): Promise<void> {
  if (owner !== undefined) await chown(path, owner.uid ?? 0, owner.gid ?? 0);
  // chmod follows chown, which clears special bits.
  await chmod(path, mode);
}

async function currentGeneration(directory: string): Promise<string | undefined> {
  const target = await readlink(join(directory, DATA)).catch(() => undefined);
  return target !== undefined && GENERATION.test(target) ? target : undefined;
}

async function holds(
  generation: string,
  files: readonly PlannedFile[],
  owner: FilesOwner | undefined,
): Promise<boolean> {
  try {
    const there = await readdir(generation, { recursive: true, withFileTypes: true });
    if (there.filter((entry) => !entry.isDirectory()).length !== files.length) return false;
    for (const { path, content, mode } of files) {
      const file = join(generation, path);
      const { mode: bits, uid, gid, size } = await lstat(file);
      if ((bits & 0o7777) !== fileMode(mode, owner) || size !== content.byteLength) return false;
      if (owner !== undefined && (uid !== (owner.uid ?? 0) || gid !== (owner.gid ?? 0))) return false;
      if (!(await readFile(file)).equals(content)) return false;
    }
    return true;
  } catch {
    return false;
  }
}

async function link(directory: string, names: ReadonlySet<string>): Promise<void> {
  for (const name of names) {
    const desired = `${DATA}/${name}`;
    const path = join(directory, name);
    if ((await readlink(path).catch(() => undefined)) === desired) continue;
    await rm(path, { recursive: true, force: true });
    await symlink(desired, path);
  }
}

/** Removes links of deleted files, and generations to which no link points. */
async function sweep(directory: string, names: ReadonlySet<string>): Promise<void> {
  const current = await currentGeneration(directory);
  for (const name of await readdir(directory)) {
    if (name === DATA || name === current || names.has(name)) continue;
    if (name.startsWith("..")) await rm(join(directory, name), { recursive: true, force: true });
    else await unlink(join(directory, name));
  }
}
