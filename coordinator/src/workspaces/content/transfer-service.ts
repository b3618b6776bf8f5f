import type {
  Archive,
  DownloadRequest,
  DownloadResponse,
  UploadRequest,
  UploadResponse,
  UploadStart,
  WorkspaceOrder,
} from "@forage/proto/forage/workspaces/v1/workspaces";
import { CoordinatorError } from "../../errors.ts";
import { toTimestamp } from "../../model/timestamp.ts";
import type { CallContext } from "../../rpc/caller.ts";
import type { Clock } from "../../time/clock.ts";
import { assertNotAborted } from "./content-errors.ts";
import type { ContentStore, StoredObject } from "./content-store.ts";
import type { Exports } from "./exports.ts";
import { IdleWatch } from "./idle-watch.ts";
import { isExport, mayDownload, mayUpload, type OrderSource } from "./order-source.ts";
import { DEFAULT_TRANSFER_LIMITS, type TransferLimits, TransferSlots } from "./transfer-slots.ts";
import { digestOf, matches, UploadReader } from "./upload-reader.ts";
import { verifiedChunks } from "./verified-chunks.ts";

export interface TransferServiceOptions {
  readonly store: ContentStore;
  readonly orders: OrderSource;
  readonly exports: Pick<Exports, "pass">;
  readonly clock: Clock;
  readonly limits?: Partial<TransferLimits>;
}

/**
 * The size of data in one gRPC message: large enough for little overhead, and small enough to bound
 * the memory for a slow reader.
 */
const MESSAGE_BYTES = 256 * 1024;

/**
 * Implements the Upload and Download RPCs of WorkspaceNodeService. A node can access only objects
 * that one of its own orders names.
 */
export class TransferService {
  readonly #options: TransferServiceOptions;
  readonly #limits: TransferLimits;
  readonly #slots: TransferSlots;
  /** The upload in progress for each object. A newer upload of the same object supersedes it. */
  readonly #uploads = new Map<string, AbortController>();

  constructor(options: TransferServiceOptions) {
    this.#options = options;
    this.#limits = { ...DEFAULT_TRANSFER_LIMITS, ...options.limits };
    this.#slots = new TransferSlots(this.#limits);
  }

  /** The number of transfers in progress. */
  get open(): number {
    return this.#slots.open;
  }

  async upload(requests: AsyncIterable<UploadRequest>, context: CallContext): Promise<UploadResponse> {
    const node = nodeOf(context);
    const release = this.#slots.acquire(node);
    const idle = new IdleWatch(this.#options.clock, this.#limits.idleMs);
    const reader = new UploadReader(requests, idle);
    try {
      const start = await reader.start(AbortSignal.any([context.signal, idle.signal]));
      this.#assertOrdered(node, start);
      if (isExport(this.#orderOf(node, start.instanceId), start.transferId))
        return await this.#pass(start, reader, AbortSignal.any([context.signal, idle.signal]));
      const stored = await this.#options.store.stat(start.object);
      if (stored !== undefined && matches(digestOf(start), stored))
        return { archive: archiveOf(stored), existed: true };
      return await this.#store(node, start, reader, [context.signal, idle.signal]);
    } finally {
      idle.progressed();
      release();
    }
  }

  async *download(request: DownloadRequest, context: CallContext): AsyncGenerator<DownloadResponse> {
    const node = nodeOf(context);
    const { instanceId, object } = request;
    const offsetBytes = Number(request.offsetBytes);
    const order = this.#orderOf(node, instanceId);
    if (!mayDownload(order, object))
      throw new CoordinatorError(
        "PERMISSION_DENIED",
        `no order of workspace ${instanceId} lets node ${node} read ${object}`,
      );
    const release = this.#slots.acquire(node);
    const idle = new IdleWatch(this.#options.clock, this.#limits.idleMs);
    // A peer that stops reading keeps this generator suspended, so the slot is released when the
    // idle time is over.
    idle.signal.addEventListener("abort", release, { once: true });
    const signal = AbortSignal.any([context.signal, idle.signal]);
    try {
      for await (const chunk of this.#options.store.read(object, { offsetBytes, signal })) {
        const bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
        for (let at = 0; at < bytes.byteLength; at += MESSAGE_BYTES) {
          idle.waiting();
          yield { data: bytes.subarray(at, at + MESSAGE_BYTES) };
          idle.progressed();
          assertNotAborted(signal);
        }
      }
    } finally {
      idle.progressed();
      idle.signal.removeEventListener("abort", release);
      release();
    }
  }

  async #pass(start: UploadStart, reader: UploadReader, signal: AbortSignal): Promise<UploadResponse> {
    const chunks = verifiedChunks(reader.data(), {
      maxBytes: this.#limits.maxArchiveBytes,
      verify: (actual) => reader.verify(start, actual),
      signal,
    });
    await this.#options.exports.pass(start.object, chunks);
    const { sizeBytes, sha256 } = chunks.digest;
    return {
      archive: { object: start.object, sizeBytes: BigInt(sizeBytes), sha256, createdAt: undefined },
      existed: false,
    };
  }

  async #store(
    node: string,
    start: UploadStart,
    reader: UploadReader,
    signals: readonly AbortSignal[],
  ): Promise<UploadResponse> {
    const superseded = new AbortController();
    this.#uploads
      .get(start.object)
      ?.abort(new CoordinatorError("ABORTED", `another upload of ${start.object} has begun`));
    this.#uploads.set(start.object, superseded);
    try {
      const stored = await this.#options.store.put(start.object, reader.data(), {
        maxBytes: this.#limits.maxArchiveBytes,
        verify: (actual) => {
          reader.verify(start, actual);
          // The order may have been fulfilled or withdrawn during the upload.
          this.#assertOrdered(node, start);
        },
        expectedBytes: Number(start.sizeBytes),
        signal: AbortSignal.any([...signals, superseded.signal]),
      });
      return { archive: archiveOf(stored), existed: false };
    } finally {
      if (this.#uploads.get(start.object) === superseded) this.#uploads.delete(start.object);
    }
  }

  #assertOrdered(node: string, { instanceId, transferId, object }: UploadStart): void {
    if (mayUpload(this.#orderOf(node, instanceId), transferId, object)) return;
    throw new CoordinatorError(
      "PERMISSION_DENIED",
      `no order of workspace ${instanceId} asks node ${node} to store ${object} by transfer ${transferId}`,
    );
  }

  #orderOf(node: string, instanceId: string): WorkspaceOrder {
    const order = this.#options.orders.orderOf(node, instanceId);
    if (order !== undefined) return order;
    throw new CoordinatorError("NOT_FOUND", `node ${node} has no order for workspace ${instanceId}`);
  }
}

function nodeOf({ caller, method }: CallContext): string {
  if (caller.type === "node") return caller.nodeId;
  throw new CoordinatorError("PERMISSION_DENIED", `${method} is for nodes with a certificate only`);
}

function archiveOf({ object, sizeBytes, sha256, storedMs }: StoredObject): Archive {
  return { object, sizeBytes: BigInt(sizeBytes), sha256, createdAt: toTimestamp(storedMs) };
}
