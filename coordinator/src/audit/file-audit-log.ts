import { unlink } from "node:fs/promises";
import { join } from "node:path";
import { type AuditFields, type ChainHead, sealEntry } from "@forage/common/audit-chain";
import type { Clock } from "@forage/common/clock";
import type { Log } from "@forage/common/log";
import type { AuditLog, AuditPage } from "./audit-log.ts";
import { appendTo, linesOf, openSegments, type Segment } from "./segments.ts";

export interface FileAuditLogOptions {
  readonly dir: string;
  readonly clock: Pick<Clock, "nowMs" | "schedule">;
  readonly log: Log;
  /** The size limit of a segment. Default: 4 MiB, about 10,000 entries. */
  readonly maxSegmentBytes?: number;
  /** The most segments, beyond which the oldest is removed. Default: 16. */
  readonly maxSegments?: number;
  /** The most pending entries, beyond which entries are lost and counted. Default: 10,000. */
  readonly maxPending?: number;
}

const DEFAULTS = { maxSegmentBytes: 4 * 1024 * 1024, maxSegments: 16, maxPending: 10_000 };
/** The most entries that are chained and written at a time. */
const BATCH = 500;
/** The delay after a failed write, because a full disk is not freed immediately. */
const AGAIN_MS = 5_000;

/**
 * Writes entries to files of limited size. If the disk is full, entries wait in memory, and no call
 * waits for them.
 */
export class FileAuditLog implements AuditLog {
  readonly #options: FileAuditLogOptions & typeof DEFAULTS;
  readonly #segments: Segment[];
  readonly #pending: { readonly fields: AuditFields; readonly time: string }[] = [];
  #head: ChainHead;
  #lost = 0;
  #isFailing = false;
  #isClosed = false;
  #writing: Promise<void> | undefined;
  #cancelRetry: (() => void) | undefined;

  /** Opens the log. @throws if the directory can't be read. */
  static async open(options: FileAuditLogOptions): Promise<FileAuditLog> {
    const { segments, head, isDamaged } = await openSegments(options.dir);
    if (isDamaged)
      options.log.error({ event: "audit-log-damaged", dir: options.dir, sequence: head.sequence });
    return new FileAuditLog(options, segments, head);
  }

  private constructor(options: FileAuditLogOptions, segments: Segment[], head: ChainHead) {
    this.#options = { ...DEFAULTS, ...options };
    this.#segments = segments;
    this.#head = head;
  }

  append(fields: AuditFields): void {
    if (this.#isClosed) return;
    if (this.#pending.length >= this.#options.maxPending) {
      this.#lost += 1;
      return;
    }
    this.#pending.push({ fields, time: this.#time() });
    this.#write();
  }

  async read(after: number, limit: number): Promise<AuditPage> {
    await this.#writing;
    // This is read before the files, because a reader would report an entry written in the meantime
    // as missing.
    const newest = this.#head.sequence;
    const lines: string[] = [];
    const start = this.#segments.findLastIndex(({ first }) => first <= after + 1);
    for (const segment of this.#segments.slice(Math.max(0, start))) {
      const found = await linesOf(segment);
      // A file contains its entries without gaps, so the position of a line determines its
      // sequence.
      lines.push(...found.slice(Math.max(0, after + 1 - segment.first), after + 1 - segment.first + limit));
      if (lines.length >= limit) break;
    }
    return { lines: lines.slice(0, limit), newest };
  }

  async close(): Promise<void> {
    this.#stopWaiting();
    if (this.#pending.length > 0) this.#write();
    await this.#writing;
    this.#isClosed = true;
    this.#stopWaiting();
  }

  #stopWaiting(): void {
    this.#cancelRetry?.();
    this.#cancelRetry = undefined;
  }

  #time(): string {
    return new Date(this.#options.clock.nowMs()).toISOString();
  }

  #write(): void {
    if (this.#writing !== undefined || this.#cancelRetry !== undefined) return;
    this.#writing = this.#writeAll().finally(() => {
      this.#writing = undefined;
    });
  }

  async #writeAll(): Promise<void> {
    const { log, clock } = this.#options;
    try {
      while (this.#pending.length > 0) await this.#writeBatch();
      this.#isFailing = false;
    } catch (err) {
      if (!this.#isFailing) log.error({ event: "audit-log-not-written", err });
      this.#isFailing = true;
      this.#cancelRetry = clock.schedule(AGAIN_MS, () => {
        this.#cancelRetry = undefined;
        this.#write();
      });
    }
  }

  /** Writes one batch. The chain advances only after the batch is on disk. */
  async #writeBatch(): Promise<void> {
    const lost = this.#lost;
    const entries = this.#pending.slice(0, BATCH);
    const missing = { fields: { event: "entries-lost", count: lost }, time: this.#time() };
    let head = this.#head;
    let text = "";
    for (const { fields, time } of lost > 0 ? [...entries, missing] : entries) {
      const sealed = sealEntry(fields, time, head);
      head = sealed.head;
      text += `${sealed.line}\n`;
    }
    await appendTo(await this.#segmentFor(text.length), text);
    this.#head = head;
    this.#lost -= lost;
    this.#pending.splice(0, entries.length);
  }

  async #segmentFor(bytes: number): Promise<Segment> {
    const { dir, maxSegmentBytes, maxSegments } = this.#options;
    const last = this.#segments.at(-1);
    if (last !== undefined && (last.bytes === 0 || last.bytes + bytes <= maxSegmentBytes)) return last;
    while (this.#segments.length >= maxSegments) {
      await unlink((this.#segments[0] as Segment).path);
      this.#segments.shift();
    }
    const first = this.#head.sequence + 1;
    const segment = { path: join(dir, `${String(first).padStart(16, "0")}.jsonl`), first, bytes: 0 };
    this.#segments.push(segment);
    return segment;
  }
}
