import { constants } from "node:fs";
import { link, mkdir, open, rename, rm, stat } from "node:fs/promises";
import { dirname } from "node:path";
import { IdentityError } from "./error.ts";

/** Files with keys and certificates have a few KiB. A longer file is something else. */
const MAX_BYTES = 256 * 1024;

/**
 * Writes a file that only its owner can read. The file is first written and synced under another name and then renamed,
 * so a crash leaves either the old file or the new one. Missing directories are made with mode 0700. With `replace:
 * false`, fails with EEXIST if the file exists.
 */
export async function writePrivateFile(
  path: string,
  text: string,
  { replace = true }: { readonly replace?: boolean } = {},
): Promise<void> {
  const directory = dirname(path);
  await mkdir(directory, { recursive: true, mode: 0o700 });
  // With a fixed name, leftovers of a crash are overwritten and don't pile up.
  const temporary = `${path}.new`;
  await rm(temporary, { force: true });
  try {
    const file = await open(temporary, "wx", 0o600);
    try {
      await file.writeFile(text);
      await file.sync();
    } finally {
      await file.close();
    }
    await (replace ? rename(temporary, path) : link(temporary, path));
  } finally {
    await rm(temporary, { force: true });
  }
  await syncDirectory(directory);
}

/** Renames a file within its directory and syncs the directory. Replaces an existing file of the new name. */
export async function movePrivateFile(from: string, to: string): Promise<void> {
  await rename(from, to);
  await syncDirectory(dirname(to));
}

/**
 * Reads a file that only its owner may read. @throws IdentityError FILE_MISSING if the file doesn't exist; FILE_UNSAFE
 * if it is a link, belongs to another user, gives its group or others any right, or is in a directory where others
 * could replace it.
 */
export async function readPrivateFile(path: string): Promise<string> {
  const file = await openNoFollow(path);
  try {
    const directory = await stat(dirname(path));
    if ((directory.mode & 0o022) !== 0) throw unsafe(dirname(path), "can be written by others");
    const { mode, uid, size } = await file.stat();
    if ((mode & 0o170000) !== constants.S_IFREG) throw unsafe(path, "isn't a plain file");
    if ((mode & 0o077) !== 0) throw unsafe(path, `has mode ${(mode & 0o777).toString(8)}, not 600`);
    const us = process.geteuid?.();
    if (us !== undefined && uid !== us && uid !== 0) throw unsafe(path, `belongs to user ${uid}`);
    if (size > MAX_BYTES) throw unsafe(path, "is too long to hold keys");
    return await file.readFile("utf8");
  } finally {
    await file.close();
  }
}

/** Reports whether the file exists, whatever its mode. */
export async function hasFile(path: string): Promise<boolean> {
  return await stat(path).then(
    () => true,
    () => false,
  );
}

async function openNoFollow(path: string) {
  try {
    return await open(path, constants.O_RDONLY | constants.O_NOFOLLOW);
  } catch (cause) {
    const code = (cause as NodeJS.ErrnoException).code;
    if (code === "ENOENT") throw new IdentityError("FILE_MISSING", `${path} does not exist`, { cause });
    throw new IdentityError("FILE_UNSAFE", `${path} can't be opened: ${code}`, { cause });
  }
}

async function syncDirectory(path: string): Promise<void> {
  const directory = await open(path, constants.O_RDONLY);
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
}

function unsafe(path: string, what: string): IdentityError {
  return new IdentityError("FILE_UNSAFE", `${path} ${what}`);
}
