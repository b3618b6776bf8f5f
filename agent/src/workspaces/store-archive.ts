import { createHash } from "node:crypto";
import { mkdir, open, readdir, rename, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import type { Archive, TransferOrder } from "@forage/proto/forage/workspaces/v1/workspaces";
import { syncDirectory } from "../journal/durable-files.ts";
import { type ConnectContent, uploadArchive } from "./content-client.ts";
import { packDirectory } from "./tar.ts";
import { WorkspaceError } from "./workspace-error.ts";

export interface ArchiveSource {
  /** The directory to make the archive of. */
  readonly content: string;
  /** The directory that holds archives until they are stored. */
  readonly directory: string;
  /** The prefix of the archive's file. */
  readonly name: string;
  readonly instanceId: string;
  readonly transfer: TransferOrder;
}

export interface ArchiveFile {
  readonly path: string;
  readonly sizeBytes: number;
  readonly sha256: string;
}

interface StoreOptions {
  readonly signal: AbortSignal;
  readonly progress: (bytesDone: number) => void;
}

const PART_SUFFIX = ".part";
const FILE_NAME = /^([0-9a-f]+)\.(\d{1,18})-([0-9a-f]{64})\.tar\.zst$/;
const READ_BYTES = 256 * 1024;

/**
 * Creates an archive in a file and stores it. A file that an earlier attempt completed is stored unchanged. If there is
 * no room for the file, the archive is sent to the content store while it is created.
 */
export async function storeArchive(
  source: ArchiveSource,
  connect: ConnectContent,
  options: StoreOptions,
): Promise<Archive> {
  const { instanceId, transfer, content } = source;
  const store = { instanceId, transferId: transfer.id, object: transfer.object };
  const file = await archiveFile(source, options.signal);
  if (file === undefined)
    return uploadArchive(connect, store, packDirectory(content, options.signal), options);
  const { sizeBytes, sha256 } = file;
  return uploadArchive(connect, { ...store, known: { sizeBytes, sha256 } }, readChunks(file.path), options);
}

/** Yields the file's content in one buffer that is reused for each chunk. */
async function* readChunks(path: string): AsyncGenerator<Buffer> {
  const handle = await open(path);
  try {
    const buffer = Buffer.allocUnsafeSlow(READ_BYTES);
    for (;;) {
      const { bytesRead } = await handle.read(buffer, 0, READ_BYTES);
      if (bytesRead === 0) return;
      yield buffer.subarray(0, bytesRead);
    }
  } finally {
    await handle.close();
  }
}

/** Returns the complete archive on disk, creating it if necessary. Undefined if the disk has no room for it. */
export async function archiveFile(
  source: ArchiveSource,
  signal: AbortSignal,
): Promise<ArchiveFile | undefined> {
  const part = join(source.directory, source.name + PART_SUFFIX);
  try {
    await mkdir(source.directory, { recursive: true, mode: 0o700 });
    return (await findComplete(source)) ?? (await makeFile(source, part, signal));
  } catch (error) {
    await rm(part, { force: true });
    if (WorkspaceError.from(error).code === "NO_ROOM") return undefined;
    throw error;
  }
}

/** The file's name holds its size and digest. It gets this name only when it is complete and on disk. */
async function makeFile(source: ArchiveSource, part: string, signal: AbortSignal): Promise<ArchiveFile> {
  const hash = createHash("sha256");
  let sizeBytes = 0;
  const handle = await open(part, "w", 0o600);
  try {
    for await (const chunk of packDirectory(source.content, signal)) {
      hash.update(chunk);
      await handle.writeFile(chunk);
      sizeBytes += chunk.byteLength;
    }
    await handle.sync();
  } finally {
    await handle.close();
  }
  const sha256 = hash.digest("hex");
  const path = join(source.directory, `${source.name}.${sizeBytes}-${sha256}.tar.zst`);
  await rename(part, path);
  await syncDirectory(source.directory);
  return { path, sizeBytes, sha256 };
}

async function findComplete({ directory, name }: ArchiveSource): Promise<ArchiveFile | undefined> {
  for (const file of await readdir(directory)) {
    const [, prefix, size, sha256] = FILE_NAME.exec(file) ?? [];
    if (prefix !== name || size === undefined || sha256 === undefined) continue;
    const path = join(directory, file);
    const sizeBytes = Number(size);
    if ((await stat(path)).size === sizeBytes) return { path, sizeBytes, sha256 };
    await rm(path, { force: true });
  }
  return undefined;
}
