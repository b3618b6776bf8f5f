import type { Dirent } from "node:fs";
import { mkdir, open, readdir, rename, rm, stat } from "node:fs/promises";
import { join, relative } from "node:path";
import { readPrivateFile, writePrivateFile } from "@forage/identity/private-file";
import type { KeyFile } from "@forage/proto/forage/coordinator/v1/coordinator";
import { ConfigError } from "../config.ts";

/**
 * The subdirectories of the data directory whose files are equal on all coordinators. The authority
 * must be last.
 */
const DIRECTORIES = ["keys", "authority"] as const;
/** The directory of incomplete files. */
const INCOMPLETE = "joining";
/** The most files, because all must fit into one message. */
const MAX_FILES = 64;
const MAX_TOTAL_BYTES = 2 * 1024 * 1024;
const MAX_PATH_LENGTH = 200;

/**
 * Matches paths such as `authority/ca.pem`. Each name starts with a letter or a digit, so that no
 * path leads out of its directory.
 */
const PATH = /^(keys|authority)(\/[A-Za-z0-9][A-Za-z0-9._-]*){1,3}$/;
/** Matches files that are being written, see `writePrivateFile`. */
const UNFINISHED = /\.new$/;

/**
 * Reads the files that all coordinators of a cluster share. Throws FILE_UNSAFE if other users may
 * read one of them.
 */
export async function readKeyFiles(dataDir: string): Promise<readonly KeyFile[]> {
  const files: KeyFile[] = [];
  let totalBytes = 0;
  for (const path of await keyPaths(dataDir)) {
    const content = Buffer.from(await readPrivateFile(join(dataDir, path)));
    totalBytes += content.length;
    files.push({ path, content });
  }
  if (files.length > MAX_FILES || totalBytes > MAX_TOTAL_BYTES)
    throw new ConfigError(
      `${dataDir}: keys/ and authority/ have ${files.length} files with ${totalBytes} bytes; at most ${MAX_FILES} with ${MAX_TOTAL_BYTES} bytes are passed on: remove what is not a key`,
    );
  return files;
}

async function keyPaths(dataDir: string): Promise<string[]> {
  const paths: string[] = [];
  for (const directory of DIRECTORIES) {
    const entries = await readdir(join(dataDir, directory), { recursive: true, withFileTypes: true });
    paths.push(...entries.filter((it) => it.isFile()).map((it) => pathOf(dataDir, it)));
  }
  return paths.filter((path) => PATH.test(path) && !UNFINISHED.test(path)).sort();
}

function pathOf(dataDir: string, { parentPath, name }: Dirent): string {
  return relative(dataDir, join(parentPath, name));
}

/**
 * Throws ConfigError if the data directory already has keys, which may belong to another cluster.
 */
export async function assertHasNoKeys(dataDir: string): Promise<void> {
  for (const name of DIRECTORIES) {
    const directory = join(dataDir, name);
    const hasImage = await stat(directory).then(
      () => true,
      () => false,
    );
    if (hasImage)
      throw new ConfigError(
        `${directory} is there, so this host has keys of a cluster: if it is to join another one, stop the coordinator and move ${DIRECTORIES.map((it) => `${it}/`).join(" and ")} away`,
      );
  }
}

/**
 * Writes the files, except in existing directories. Each directory appears complete, and the
 * authority last, so that a coordinator with an authority also has the other keys. Returns the
 * written paths.
 */
export async function writeKeyFiles(dataDir: string, files: readonly KeyFile[]): Promise<readonly string[]> {
  const bad = files.find(({ path }) => path.length > MAX_PATH_LENGTH || !PATH.test(path));
  if (bad !== undefined)
    throw new ConfigError(
      `the coordinator sent a file with the path ${JSON.stringify(bad.path.slice(0, MAX_PATH_LENGTH))}, which is none of its keys`,
    );
  await assertHasNoKeys(dataDir);
  const incomplete = join(dataDir, INCOMPLETE);
  await rm(incomplete, { recursive: true, force: true });
  try {
    for (const { path, content } of files)
      await writePrivateFile(join(incomplete, path), content.toString("utf8"));
    for (const name of DIRECTORIES) {
      await mkdir(join(incomplete, name), { recursive: true, mode: 0o700 });
      await rename(join(incomplete, name), join(dataDir, name));
    }
  } finally {
    await rm(incomplete, { recursive: true, force: true });
  }
  await syncDirectory(dataDir);
  return files.map(({ path }) => path);
}

async function syncDirectory(path: string): Promise<void> {
  const directory = await open(path, "r");
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
}
