import { spawn } from "node:child_process";
import { createReadStream, createWriteStream } from "node:fs";
import { mkdtemp, open, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createGunzip, createZstdDecompress } from "node:zlib";
import { CliError } from "../errors.ts";
import type { World } from "../world.ts";
import { ArchiveFile } from "./archive-file.ts";

/**
 * Programs that store images and can save them to an archive. The first that has the image is used.
 */
const PROGRAMS = ["docker", "nerdctl", "podman"];
const COMPLAINT_MAX_LENGTH = 2_000;

export interface ImageSource {
  readonly archive: ArchiveFile;
  /** The image that the user named; undefined for an archive. */
  readonly image: string | undefined;
  close(): Promise<void>;
}

/** Opens an archive by its path, standard input by `-`, or an image on this machine by its name. */
export async function openSource(
  operand: string,
  world: Pick<World, "env" | "stdin">,
  signal: AbortSignal,
): Promise<ImageSource> {
  const isFile = operand !== "-" && (await stat(operand).catch(() => undefined))?.isFile() === true;
  return isFile || operand === "-"
    ? openArchive(operand, world, signal)
    : openImage(operand, world.env, signal);
}

/**
 * Opens an archive by its path, or standard input by `-`. A compressed archive is unpacked into a
 * temporary file.
 */
export async function openArchive(
  path: string,
  { stdin }: Pick<World, "stdin">,
  signal: AbortSignal,
): Promise<ImageSource> {
  if (path !== "-" && (await compressionOf(path)) === undefined) {
    const archive = await ArchiveFile.open(path);
    return { archive, image: undefined, close: () => archive.close() };
  }
  return withDirectory(undefined, async (directory) => {
    const raw = path === "-" ? join(directory, "archive") : path;
    if (path === "-") await pipeline(stdin, createWriteStream(raw, { mode: 0o600 }), { signal });
    return ArchiveFile.open(await unpack(raw, join(directory, "plain"), signal));
  });
}

/** Opens an image that docker, nerdctl or podman has on this machine. */
export function openImage(image: string, env: World["env"], signal: AbortSignal): Promise<ImageSource> {
  return withDirectory(image, async (directory) => {
    const raw = join(directory, "archive");
    await saveImage(image, raw, env, signal);
    return ArchiveFile.open(await unpack(raw, join(directory, "plain"), signal));
  });
}

/** Opens an archive in a temporary directory, which is removed when the source is closed. */
async function withDirectory(
  image: string | undefined,
  openIn: (directory: string) => Promise<ArchiveFile>,
): Promise<ImageSource> {
  const directory = await mkdtemp(join(tmpdir(), "forage-image-"));
  const remove = (): Promise<void> => rm(directory, { recursive: true, force: true });
  try {
    const archive = await openIn(directory);
    const close = async (): Promise<void> => {
      await archive.close();
      await remove();
    };
    return { archive, image, close };
  } catch (error) {
    await remove();
    throw error;
  }
}

/** Unpacks an archive if necessary. Returns the path of the uncompressed archive. */
async function unpack(path: string, plain: string, signal: AbortSignal): Promise<string> {
  const unpacker = await compressionOf(path);
  if (unpacker === undefined) return path;
  await pipeline(createReadStream(path), unpacker(), createWriteStream(plain, { mode: 0o600 }), { signal });
  return plain;
}

async function compressionOf(
  path: string,
): Promise<typeof createGunzip | typeof createZstdDecompress | undefined> {
  const file = await open(path, "r");
  try {
    const { buffer } = await file.read(Buffer.alloc(4), 0, 4, 0);
    if (buffer.readUInt16BE(0) === 0x1f8b) return createGunzip;
    return buffer.readUInt32BE(0) === 0x28b52ffd ? createZstdDecompress : undefined;
  } finally {
    await file.close();
  }
}

async function saveImage(image: string, path: string, env: World["env"], signal: AbortSignal): Promise<void> {
  const complaints: string[] = [];
  for (const program of PROGRAMS) {
    const complaint = await save(program, image, path, env, signal);
    if (complaint === undefined) return;
    complaints.push(`${program}: ${complaint}`);
  }
  throw new CliError(
    "NOT_FOUND",
    `"${image}" is neither a file nor an image of this machine (${complaints.join("; ")}): name an archive, or pull or build the image first`,
  );
}

/** Saves an image by the program. Returns the reason if the program failed. */
async function save(
  program: string,
  image: string,
  path: string,
  env: World["env"],
  signal: AbortSignal,
): Promise<string | undefined> {
  const child = spawn(program, ["save", "--", image], {
    env: { ...env },
    stdio: ["ignore", "pipe", "pipe"],
    signal,
  });
  let complaint = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    complaint = `${complaint}${text}`.slice(-COMPLAINT_MAX_LENGTH);
  });
  const ended = new Promise<string | undefined>((resolve) => {
    child.once("error", ({ message, ...error }) =>
      resolve("code" in error && error.code === "ENOENT" ? "not installed" : message),
    );
    child.once("close", (code) => {
      resolve(code === 0 ? undefined : (complaint.trim().split("\n").at(-1) ?? "") || `exit code ${code}`);
    });
  });
  await pipeline(child.stdout as Readable, createWriteStream(path, { mode: 0o600 }), { signal });
  return ended;
}
