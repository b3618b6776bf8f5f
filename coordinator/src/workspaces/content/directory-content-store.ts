import { constants } from "node:fs";
import {
  type FileHandle,
  mkdir,
  open,
  opendir,
  readdir,
  rename,
  rm,
  rmdir,
  stat,
  unlink,
} from "node:fs/promises";
import { dirname, join } from "node:path";
import { withLinkedSignal } from "@forage/common/link-signals";
import { CoordinatorError } from "../../errors.ts";
import { assertNotAborted, assertOffset, notFound, storeClosed } from "./content-errors.ts";
import type {
  ContentStore,
  Digest,
  ListedObject,
  PutOptions,
  ReadOptions,
  StoredObject,
} from "./content-store.ts";
import { codeOf, fromSystemError } from "./directory-errors.ts";
import { fileName, parseFileName } from "./directory-file-name.ts";
import { assertObjectName, assertObjectPrefix } from "./object-name.ts";
import { verifiedChunks } from "./verified-chunks.ts";

export interface DirectoryContentStoreOptions {
  readonly name: string;
  /** The directory of the store. It is created if missing, and must hold no other files. */
  readonly dir: string;
  readonly randomName: (length: number) => string;
  /** Returns the bytes that unprivileged users may still write on the directory's file system. */
  readonly freeBytes: () => Promise<number>;
  /**
   * Free space that archives must leave: the coordinator's own store may be on the same file
   * system.
   */
  readonly reserveBytes: number;
}

/**
 * The size of one read of a file. Larger reads are no faster, and each transfer holds one buffer.
 */
const CHUNK_BYTES = 256 * 1024;
/**
 * The number of written bytes between two checks of the free space. Uploads can use only a little
 * of the reserve in between.
 */
const SPACE_CHECK_BYTES = 16 * 1024 * 1024;
/** Attempts to open an object that is replaced between its lookup and its opening. */
const MAX_OPEN_ATTEMPTS = 3;
/** The directory of unfinished uploads. Its name starts with a dot, which no object's path can. */
const UPLOADS = ".uploads";

/**
 * Stores each archive in one file, `OBJECT@SIZE@SHA256`: a single rename publishes content, size
 * and digest. The file is synced before the rename, and the directory after it.
 */
export class DirectoryContentStore implements ContentStore {
  readonly name: string;
  readonly #options: DirectoryContentStoreOptions;
  readonly #closing = new AbortController();
  readonly #puts = new Set<Promise<unknown>>();
  #last: Promise<void> = Promise.resolve();

  private constructor(options: DirectoryContentStoreOptions) {
    this.name = options.name;
    this.#options = options;
  }

  /** Opens the store. Removes uploads that a former process left unfinished. */
  static async open(options: DirectoryContentStoreOptions): Promise<DirectoryContentStore> {
    const uploads = join(options.dir, UPLOADS);
    try {
      await rm(uploads, { recursive: true, force: true });
      await mkdir(uploads, { recursive: true, mode: 0o700 });
    } catch (cause) {
      throw fromSystemError(cause, `the content directory ${options.dir} can't be opened`);
    }
    return new DirectoryContentStore(options);
  }

  async put(object: string, chunks: AsyncIterable<Uint8Array>, options: PutOptions): Promise<StoredObject> {
    this.#assertOpen();
    assertObjectName(object);
    const work = withLinkedSignal([options.signal, this.#closing.signal], (signal) =>
      this.#put(object, chunks, { ...options, signal }),
    );
    this.#puts.add(work);
    try {
      return await work;
    } catch (cause) {
      throw fromSystemError(cause, `object ${object} can't be stored`);
    } finally {
      this.#puts.delete(work);
    }
  }

  async *read(object: string, { offsetBytes, signal }: ReadOptions): AsyncGenerator<Uint8Array> {
    this.#assertOpen();
    assertObjectName(object);
    const { stored, handle } = await this.#open(object);
    try {
      assertOffset(object, offsetBytes, stored.sizeBytes);
      let at = offsetBytes;
      while (at < stored.sizeBytes) {
        assertNotAborted(signal);
        this.#assertOpen();
        const buffer = Buffer.allocUnsafe(Math.min(CHUNK_BYTES, stored.sizeBytes - at));
        const { bytesRead } = await handle.read(buffer, 0, buffer.length, at).catch((cause: unknown) => {
          throw fromSystemError(cause, `object ${object} can't be read`);
        });
        if (bytesRead === 0)
          throw new CoordinatorError(
            "INTERNAL",
            `object ${object} is damaged: its file has ${at} bytes and must have ${stored.sizeBytes}`,
          );
        at += bytesRead;
        yield buffer.subarray(0, bytesRead);
      }
    } finally {
      await handle.close();
    }
  }

  async stat(object: string): Promise<StoredObject | undefined> {
    this.#assertOpen();
    assertObjectName(object);
    return this.#newest(object);
  }

  async *list(prefix: string): AsyncGenerator<ListedObject> {
    this.#assertOpen();
    assertObjectPrefix(prefix);
    yield* this.#listDirectory(prefix.split("/").slice(0, -1));
  }

  async delete(object: string): Promise<void> {
    this.#assertOpen();
    assertObjectName(object);
    try {
      await this.#exclusively(() => this.#remove(object));
    } catch (cause) {
      throw fromSystemError(cause, `object ${object} can't be deleted`);
    }
  }

  async close(): Promise<void> {
    this.#closing.abort(storeClosed());
    await Promise.allSettled(this.#puts);
  }

  async #put(object: string, chunks: AsyncIterable<Uint8Array>, options: PutOptions): Promise<StoredObject> {
    const verified = verifiedChunks(chunks, options);
    const temporary = join(this.#options.dir, UPLOADS, this.#options.randomName(20));
    const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL;
    const handle = await open(temporary, flags, 0o600);
    try {
      try {
        await this.#write(handle, verified);
        await handle.sync();
      } finally {
        await handle.close();
      }
      return await this.#exclusively(() => this.#publish(object, temporary, verified.digest));
    } catch (error) {
      await unlinkIfThere(temporary);
      throw error;
    }
  }

  async #publish(object: string, temporary: string, digest: Digest): Promise<StoredObject> {
    const dir = await this.#makeDirectories(object.split("/").slice(0, -1));
    const former = await this.#filesOf(object);
    const file = fileName(object, digest);
    await rename(temporary, join(dir, file));
    await syncDirectory(dir);
    for (const old of former) if (old !== file) await unlinkIfThere(join(dir, old));
    return { object, ...digest, storedMs: (await stat(join(dir, file))).mtimeMs };
  }

  async #remove(object: string): Promise<void> {
    const dir = this.#directoryOf(object);
    const files = await this.#filesOf(object);
    for (const file of files) await unlinkIfThere(join(dir, file));
    if (files.length > 0) await syncDirectory(dir);
    await this.#removeEmpty(object.split("/").slice(0, -1));
  }

  /**
   * Runs one operation on directories at a time, so that no new directory is removed before its
   * first file is in it.
   */
  #exclusively<T>(run: () => Promise<T>): Promise<T> {
    const result = this.#last.then(run);
    this.#last = result.then(
      () => {},
      () => {},
    );
    return result;
  }

  async #write(handle: FileHandle, chunks: AsyncIterable<Uint8Array>): Promise<void> {
    let untilCheck = 0;
    for await (const chunk of chunks) {
      if (untilCheck <= 0) {
        await this.#assertSpace();
        untilCheck = SPACE_CHECK_BYTES;
      }
      untilCheck -= chunk.byteLength;
      for (let at = 0; at < chunk.byteLength; )
        at += (await handle.write(chunk, at, chunk.byteLength - at)).bytesWritten;
    }
  }

  async #assertSpace(): Promise<void> {
    const { dir, reserveBytes, freeBytes } = this.#options;
    const free = await freeBytes();
    if (free >= reserveBytes + SPACE_CHECK_BYTES) return;
    throw new CoordinatorError(
      "RESOURCE_EXHAUSTED",
      `the content store has no space: ${free} bytes are free at ${dir}, and ${reserveBytes} stay in reserve; free some space there`,
    );
  }

  async #open(object: string): Promise<{ readonly stored: StoredObject; readonly handle: FileHandle }> {
    for (let attempt = 0; attempt < MAX_OPEN_ATTEMPTS; attempt++) {
      const stored = await this.#newest(object);
      if (stored === undefined) break;
      const path = join(this.#directoryOf(object), fileName(object, stored));
      try {
        return { stored, handle: await open(path, constants.O_RDONLY | constants.O_NOFOLLOW) };
      } catch (cause) {
        // The file was replaced or deleted after the lookup.
        if (!isMissing(cause)) throw fromSystemError(cause, `object ${object} can't be read`);
      }
    }
    throw notFound(object);
  }

  /**
   * Returns the newest file of an object. There are two if the coordinator crashed between the
   * rename and the removal of the former file.
   */
  async #newest(object: string): Promise<StoredObject | undefined> {
    const dir = this.#directoryOf(object);
    try {
      let newest: StoredObject | undefined;
      for (const file of await this.#filesOf(object)) {
        const parsed = parseFileName(file);
        const found = await statIfThere(join(dir, file));
        if (parsed === undefined || found === undefined) continue;
        if (newest !== undefined && newest.storedMs >= found.mtimeMs) continue;
        newest = { object, sizeBytes: parsed.sizeBytes, sha256: parsed.sha256, storedMs: found.mtimeMs };
      }
      return newest;
    } catch (cause) {
      throw fromSystemError(cause, `object ${object} can't be read`);
    }
  }

  async #filesOf(object: string): Promise<string[]> {
    const last = object.slice(object.lastIndexOf("/") + 1);
    const names = await readdir(this.#directoryOf(object)).catch((error: unknown) => {
      if (isMissing(error)) return [];
      throw error;
    });
    return names.filter((name) => parseFileName(name)?.segment === last);
  }

  async *#listDirectory(segments: readonly string[]): AsyncGenerator<ListedObject> {
    const dir = join(this.#options.dir, ...segments);
    const entries = await opendir(dir).catch((cause: unknown) => {
      if (isMissing(cause)) return [];
      throw fromSystemError(cause, `the content directory ${dir} can't be listed`);
    });
    for await (const entry of entries) {
      this.#assertOpen();
      if (entry.name.startsWith(".")) continue;
      if (entry.isDirectory()) yield* this.#listDirectory([...segments, entry.name]);
      const parsed = entry.isFile() ? parseFileName(entry.name) : undefined;
      if (parsed === undefined) continue;
      const found = await statIfThere(join(dir, entry.name));
      if (found === undefined) continue;
      const object = [...segments, parsed.segment].join("/");
      yield { object, sizeBytes: parsed.sizeBytes, storedMs: found.mtimeMs };
    }
  }

  /**
   * Creates the directories of an object. Each directory's entry is synced before a file is
   * published in it.
   */
  async #makeDirectories(segments: readonly string[]): Promise<string> {
    let dir = this.#options.dir;
    for (const segment of segments) {
      const parent = dir;
      dir = join(parent, segment);
      const made = await mkdir(dir, { recursive: true, mode: 0o700 });
      if (made !== undefined) await syncDirectory(parent);
    }
    return dir;
  }

  async #removeEmpty(segments: readonly string[]): Promise<void> {
    for (let depth = segments.length; depth > 0; depth--) {
      const dir = join(this.#options.dir, ...segments.slice(0, depth));
      try {
        // `rmdir` fails for a directory that is not empty.
        await rmdir(dir);
      } catch (error) {
        if (codeOf(error) === "ENOTEMPTY") return;
        if (!isMissing(error)) throw error;
      }
    }
  }

  #directoryOf(object: string): string {
    return dirname(join(this.#options.dir, object));
  }

  #assertOpen(): void {
    if (this.#closing.signal.aborted) throw storeClosed();
  }
}

async function syncDirectory(dir: string): Promise<void> {
  const handle = await open(dir, constants.O_RDONLY | constants.O_DIRECTORY);
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

async function unlinkIfThere(path: string): Promise<void> {
  await unlink(path).catch((error: unknown) => {
    if (!isMissing(error)) throw error;
  });
}

function statIfThere(path: string) {
  return stat(path).catch((error: unknown) => {
    if (isMissing(error)) return undefined;
    throw error;
  });
}

function isMissing(error: unknown): boolean {
  return codeOf(error) === "ENOENT" || codeOf(error) === "ENOTDIR";
}
