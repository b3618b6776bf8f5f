import { Readable } from "node:stream";
import {
  AbortMultipartUploadCommand,
  DeleteObjectCommand,
  GetObjectCommand,
  HeadObjectCommand,
  PutObjectCommand,
  paginateListObjectsV2,
  S3Client,
} from "@aws-sdk/client-s3";
import { Upload } from "@aws-sdk/lib-storage";
import { linkSignals } from "@forage/common/link-signals";
import { CoordinatorError } from "../../../errors.ts";
import { assertNotAborted, assertOffset, notFound, storeClosed } from "../content-errors.ts";
import type { ContentStore, ListedObject, PutOptions, ReadOptions, StoredObject } from "../content-store.ts";
import { assertObjectName, assertObjectPrefix } from "../object-name.ts";
import { OrphanAges } from "../orphan-ages.ts";
import { untilAborted } from "../until-aborted.ts";
import { verifiedChunks } from "../verified-chunks.ts";
import { paginateListMultipartUploads } from "./multipart-uploads.ts";
import { fromS3Error } from "./s3-errors.ts";
import { type IndexEntry, parseIndexKey, S3Keys } from "./s3-keys.ts";

export interface S3ContentStoreOptions {
  readonly name: string;
  readonly endpoint?: string;
  readonly region: string;
  readonly bucket: string;
  /** The prefix of all keys. No other program may store objects under it. */
  readonly prefix: string;
  /**
   * Puts the bucket's name into the path instead of the host name, as most servers other than
   * Amazon's require.
   */
  readonly forcePathStyle: boolean;
  readonly credentials: { readonly accessKeyId: string; readonly secretAccessKey: string };
  readonly randomName: (length: number) => string;
  readonly nowMs: () => number;
  readonly monotonicMs: () => number;
}

/**
 * The least size of a part. S3 allows 10,000 parts of an upload, so this suffices for 150 GiB;
 * larger archives of known size get larger parts.
 */
const PART_BYTES = 16 * 1024 * 1024;
const MAX_PARTS = 9_000;
/** The number of parts sent at a time: one is sent while the next one fills. */
const PARTS_IN_FLIGHT = 2;
/** The most index entries of one object. More mean that another program writes under the prefix. */
const MAX_ENTRIES = 20;
const CONNECT_TIMEOUT_MS = 5_000;
/**
 * The time without an answer after which a request fails. A server may need a while to verify a
 * large archive after its last part.
 */
const SILENCE_TIMEOUT_MS = 60_000;

/**
 * Holds archives in a bucket. The data has a random key. An empty object publishes it, whose key
 * holds name, size and digest: a replacement is a single write, and a reader always knows the
 * digest.
 */
export class S3ContentStore implements ContentStore {
  readonly name: string;
  readonly #options: S3ContentStoreOptions;
  readonly #client: S3Client;
  readonly #keys: S3Keys;
  readonly #closing = new AbortController();
  readonly #puts = new Set<Promise<unknown>>();
  readonly #ages: OrphanAges;
  /** The keys of data being written. */
  readonly #writing = new Set<string>();

  constructor(options: S3ContentStoreOptions) {
    const { endpoint, region, forcePathStyle, credentials } = options;
    this.name = options.name;
    this.#options = options;
    this.#keys = new S3Keys(options.prefix);
    this.#ages = new OrphanAges(options.monotonicMs);
    this.#client = new S3Client({
      region,
      forcePathStyle,
      credentials,
      ...(endpoint !== undefined && { endpoint }),
      requestHandler: { connectionTimeout: CONNECT_TIMEOUT_MS, socketTimeout: SILENCE_TIMEOUT_MS },
    });
  }

  async put(object: string, chunks: AsyncIterable<Uint8Array>, options: PutOptions): Promise<StoredObject> {
    this.#assertOpen();
    assertObjectName(object);
    const { signal, unlink } = linkSignals(options.signal, this.#closing.signal);
    const work = this.#put(object, chunks, { ...options, signal });
    this.#puts.add(work);
    try {
      return await work;
    } catch (cause) {
      assertNotAborted(signal);
      throw fromS3Error(cause, `object ${object} can't be stored`);
    } finally {
      unlink();
      this.#puts.delete(work);
    }
  }

  async *read(object: string, { offsetBytes, signal }: ReadOptions): AsyncGenerator<Uint8Array> {
    this.#assertOpen();
    assertObjectName(object);
    const what = `object ${object} can't be read`;
    const entry = await this.#newest(object);
    if (entry === undefined) throw notFound(object);
    assertOffset(object, offsetBytes, entry.sizeBytes);
    if (offsetBytes === entry.sizeBytes) return;
    const Key = this.#keys.data(object, entry.data);
    const range = `bytes=${offsetBytes}-${entry.sizeBytes - 1}`;
    let at = offsetBytes;
    const { signal: over, unlink } = linkSignals(signal, this.#closing.signal);
    try {
      const command = new GetObjectCommand({ Bucket: this.#options.bucket, Key, Range: range });
      const { Body } = await this.#client.send(command, { abortSignal: over });
      if (!(Body instanceof Readable))
        throw new CoordinatorError("INTERNAL", `${what}: the answer has no body`);
      for await (const chunk of untilAborted<Uint8Array>(Body, over)) {
        at += chunk.byteLength;
        yield chunk;
      }
    } catch (cause) {
      assertNotAborted(over);
      throw fromS3Error(cause, what);
    } finally {
      unlink();
    }
    if (at !== entry.sizeBytes)
      throw new CoordinatorError(
        "INTERNAL",
        `object ${object} is damaged: it has ${at} bytes and must have ${entry.sizeBytes}`,
      );
  }

  async stat(object: string): Promise<StoredObject | undefined> {
    this.#assertOpen();
    assertObjectName(object);
    const entry = await this.#newest(object);
    if (entry === undefined) return undefined;
    try {
      await this.#assertData(object, entry);
    } catch (cause) {
      throw fromS3Error(cause, `the data of object ${object} can't be found`);
    }
    const { sizeBytes, sha256, storedMs } = entry;
    return { object, sizeBytes, sha256, storedMs };
  }

  async *list(prefix: string): AsyncGenerator<ListedObject> {
    this.#assertOpen();
    assertObjectPrefix(prefix);
    for await (const { object, sizeBytes, storedMs } of this.#entries(this.#keys.index(prefix))) {
      this.#assertOpen();
      yield { object, sizeBytes, storedMs };
    }
  }

  async delete(object: string): Promise<void> {
    this.#assertOpen();
    assertObjectName(object);
    try {
      for (const entry of await this.#entriesOf(object)) await this.#remove(entry);
    } catch (cause) {
      throw fromS3Error(cause, `object ${object} can't be deleted`);
    }
  }

  /**
   * Removes data that no index entry refers to and multipart uploads that were never completed,
   * once sweeps have seen them for the given age.
   */
  async removeRemains(minAgeMs: number): Promise<number> {
    this.#assertOpen();
    const Bucket = this.#options.bucket;
    const sweep = this.#ages.begin();
    let removed = 0;
    try {
      const named = new Set(this.#writing);
      for await (const entry of this.#entries(this.#keys.index("")))
        named.add(this.#keys.data(entry.object, entry.data));
      for await (const { Key } of this.#objects(this.#keys.data("", ""))) {
        if (named.has(Key) || !sweep.isDue(Key, minAgeMs)) continue;
        await this.#client.send(new DeleteObjectCommand({ Bucket, Key }));
        removed += 1;
      }
      const uploads = paginateListMultipartUploads(this.#client, Bucket, this.#keys.data("", ""));
      for await (const { Key = "", UploadId } of uploads) {
        if (named.has(Key) || !sweep.isDue(`${Key} ${UploadId}`, minAgeMs)) continue;
        await this.#client.send(new AbortMultipartUploadCommand({ Bucket, Key, UploadId }));
        removed += 1;
      }
      sweep.finish();
    } catch (cause) {
      throw fromS3Error(cause, "remains of unfinished uploads can't be removed");
    }
    return removed;
  }

  async close(): Promise<void> {
    this.#closing.abort(storeClosed());
    await Promise.allSettled(this.#puts);
    this.#client.destroy();
  }

  async #put(object: string, chunks: AsyncIterable<Uint8Array>, options: PutOptions): Promise<StoredObject> {
    const former = await this.#entriesOf(object);
    const data = this.#options.randomName(20);
    const Bucket = this.#options.bucket;
    const Key = this.#keys.data(object, data);
    const verified = verifiedChunks(chunks, options);
    this.#writing.add(Key);
    try {
      await this.#upload(Key, verified, options);
      const entry = { object, ...verified.digest, data };
      await this.#assertData(object, entry);
      await this.#client.send(new PutObjectCommand({ Bucket, Key: this.#keys.entry(entry), Body: "" }));
    } finally {
      this.#writing.delete(Key);
    }
    for (const old of former) await this.#remove(old);
    return { object, ...verified.digest, storedMs: this.#options.nowMs() };
  }

  async #upload(Key: string, chunks: AsyncIterable<Uint8Array>, options: PutOptions): Promise<void> {
    const body = Readable.from(chunks, { objectMode: false, highWaterMark: 1 });
    const partSize = Math.max(PART_BYTES, Math.ceil((options.expectedBytes ?? 0) / MAX_PARTS));
    const upload = new Upload({
      client: this.#client,
      params: { Bucket: this.#options.bucket, Key, Body: body },
      partSize,
      queueSize: PARTS_IN_FLIGHT,
    });
    const abort = (): void => void upload.abort();
    options.signal.addEventListener("abort", abort, { once: true });
    try {
      await upload.done();
    } finally {
      options.signal.removeEventListener("abort", abort);
      body.destroy();
    }
  }

  /** Throws if the stored data does not have the size in the entry. */
  async #assertData(object: string, entry: Omit<IndexEntry, "storedMs">): Promise<void> {
    const Key = this.#keys.data(object, entry.data);
    const { ContentLength } = await this.#client.send(
      new HeadObjectCommand({ Bucket: this.#options.bucket, Key }),
    );
    if (ContentLength === entry.sizeBytes) return;
    throw new CoordinatorError(
      "INTERNAL",
      `object ${object} is damaged: it has ${ContentLength} bytes and must have ${entry.sizeBytes}`,
    );
  }

  /**
   * Removes an object. Its entry is deleted before its data, so that no entry refers to missing
   * data.
   */
  async #remove(entry: IndexEntry): Promise<void> {
    const Bucket = this.#options.bucket;
    for (const Key of [this.#keys.entry(entry), this.#keys.data(entry.object, entry.data)])
      await this.#client.send(new DeleteObjectCommand({ Bucket, Key }));
  }

  async #newest(object: string): Promise<IndexEntry | undefined> {
    try {
      const entries = await this.#entriesOf(object);
      return entries.sort((a, b) => b.storedMs - a.storedMs)[0];
    } catch (cause) {
      throw fromS3Error(cause, `object ${object} can't be looked up`);
    }
  }

  async #entriesOf(object: string): Promise<IndexEntry[]> {
    const entries: IndexEntry[] = [];
    for await (const entry of this.#entries(this.#keys.entriesOf(object))) {
      entries.push(entry);
      if (entries.length >= MAX_ENTRIES) break;
    }
    return entries;
  }

  async *#entries(prefix: string): AsyncGenerator<IndexEntry> {
    for await (const { Key, LastModified } of this.#objects(prefix)) {
      const entry = parseIndexKey(this.#keys, Key);
      if (entry !== undefined) yield { ...entry, storedMs: LastModified.getTime() };
    }
  }

  async *#objects(Prefix: string): AsyncGenerator<{ readonly Key: string; readonly LastModified: Date }> {
    const pages = paginateListObjectsV2({ client: this.#client }, { Bucket: this.#options.bucket, Prefix });
    try {
      for await (const { Contents = [] } of pages)
        for (const { Key, LastModified = new Date(0) } of Contents)
          if (Key !== undefined) yield { Key, LastModified };
    } catch (cause) {
      throw fromS3Error(cause, `bucket ${this.#options.bucket} can't be listed`);
    }
  }

  #assertOpen(): void {
    if (this.#closing.signal.aborted) throw storeClosed();
  }
}
