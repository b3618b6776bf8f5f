import { assertNotAborted, assertOffset, notFound, storeClosed } from "./content-errors.ts";
import type { ContentStore, ListedObject, PutOptions, ReadOptions, StoredObject } from "./content-store.ts";
import { assertObjectName, assertObjectPrefix } from "./object-name.ts";
import { verifiedChunks } from "./verified-chunks.ts";

interface Held {
  readonly stored: StoredObject;
  readonly bytes: Buffer;
}

/** The size of the chunks that a read yields. */
const CHUNK_BYTES = 256 * 1024;

/** Holds archives in memory. For tests and simulations. */
export class MemoryContentStore implements ContentStore {
  readonly name: string;
  readonly #nowMs: () => number;
  readonly #objects = new Map<string, Held>();
  #closed = false;

  constructor({ name = "memory", nowMs }: { readonly name?: string; readonly nowMs: () => number }) {
    this.name = name;
    this.#nowMs = nowMs;
  }

  async put(object: string, chunks: AsyncIterable<Uint8Array>, options: PutOptions): Promise<StoredObject> {
    this.#assertOpen();
    assertObjectName(object);
    const verified = verifiedChunks(chunks, options);
    const parts: Uint8Array[] = [];
    for await (const chunk of verified) {
      this.#assertOpen();
      parts.push(Uint8Array.from(chunk));
    }
    const stored = { object, ...verified.digest, storedMs: this.#nowMs() };
    this.#objects.set(object, { stored, bytes: Buffer.concat(parts) });
    return stored;
  }

  async *read(object: string, { offsetBytes, signal }: ReadOptions): AsyncGenerator<Uint8Array> {
    this.#assertOpen();
    assertObjectName(object);
    const held = this.#objects.get(object);
    if (held === undefined) throw notFound(object);
    assertOffset(object, offsetBytes, held.bytes.length);
    for (let at = offsetBytes; at < held.bytes.length; at += CHUNK_BYTES) {
      assertNotAborted(signal);
      this.#assertOpen();
      yield held.bytes.subarray(at, at + CHUNK_BYTES);
    }
  }

  async stat(object: string): Promise<StoredObject | undefined> {
    this.#assertOpen();
    assertObjectName(object);
    return this.#objects.get(object)?.stored;
  }

  async *list(prefix: string): AsyncGenerator<ListedObject> {
    this.#assertOpen();
    assertObjectPrefix(prefix);
    for (const { stored } of this.#objects.values()) if (stored.object.startsWith(prefix)) yield stored;
  }

  async delete(object: string): Promise<void> {
    this.#assertOpen();
    assertObjectName(object);
    this.#objects.delete(object);
  }

  async close(): Promise<void> {
    this.#closed = true;
  }

  #assertOpen(): void {
    if (this.#closed) throw storeClosed();
  }
}
