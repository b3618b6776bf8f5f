import { join } from "node:path";
import { hostFiles, type JournalFiles } from "../journal/journal-files.ts";
import type { ImageAccess } from "../pods/image-access.ts";
import { fullForm } from "../runtime/image-reference.ts";
import type { PushRecords } from "./image-push.ts";

/** The record of a local image. */
export interface ImageRecord {
  /** The wall-clock time of the image's last use. */
  readonly lastUsedMs: number;
  /**
   * The namespaces that may use the image because they pulled it with their own credentials, or because it was pushed for them.
   * Undefined: every namespace may.
   */
  readonly namespaces?: readonly string[];
  /** Set for an image that was pushed to this host and may be in no registry. */
  readonly pushed?: PushRecord;
}

export interface PushRecord {
  /** The digests of the layers. */
  readonly layers: readonly string[];
}

export interface ImageRecordsOptions {
  readonly dir: string;
  /** Default: the host's disk. */
  readonly files?: JournalFiles;
  readonly nowMs: () => number;
  readonly onError: (error: unknown) => void;
}

const FILE = "images.json";

/**
 * Records when images were last used and which namespaces may use them, by full reference, in one small file. After a
 * failed write the records stay in memory, and the next write includes them.
 */
export class ImageRecords implements ImageAccess, PushRecords {
  readonly #options: ImageRecordsOptions;
  readonly #records: Map<string, ImageRecord>;
  #saving: Promise<void> = Promise.resolve();

  private constructor(options: ImageRecordsOptions, records: Map<string, ImageRecord>) {
    this.#options = options;
    this.#records = records;
  }

  static async open(options: ImageRecordsOptions): Promise<ImageRecords> {
    const { dir, files = hostFiles } = options;
    try {
      await files.makeDirectory(dir);
      return new ImageRecords(options, parse((await files.read(join(dir, FILE))).toString()));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOENT") options.onError(error);
      return new ImageRecords(options, new Map());
    }
  }

  isOpenTo(reference: string, namespace: string): boolean {
    const { namespaces } = this.#records.get(fullForm(reference)) ?? {};
    return namespaces === undefined || namespaces.includes(namespace);
  }

  pulled(reference: string, namespace: string, withLogin: boolean): void {
    const key = fullForm(reference);
    const known = this.#records.get(key);
    const lastUsedMs = this.#options.nowMs();
    const closed = withLogin && (known === undefined || known.namespaces !== undefined);
    const namespaces = [...new Set([...(known?.namespaces ?? []), namespace])].sort();
    this.#records.set(key, closed ? { lastUsedMs, namespaces } : { lastUsedMs });
    const isNews =
      closed !== (known?.namespaces !== undefined) || namespaces.length !== known?.namespaces?.length;
    if (isNews) void this.save();
  }

  isOnlyOf(reference: string, namespace: string): boolean {
    const { namespaces } = this.#records.get(fullForm(reference)) ?? {};
    return namespaces?.length === 1 && namespaces[0] === namespace;
  }

  layersOf(namespace: string): ReadonlySet<string> {
    const pushed = [...this.#records].filter(([reference]) => this.isOpenTo(reference, namespace));
    return new Set(pushed.flatMap(([, record]) => record.pushed?.layers ?? []));
  }

  async pushed(reference: string, namespace: string | undefined, layers: readonly string[]): Promise<void> {
    const lastUsedMs = this.#options.nowMs();
    const namespaces = namespace === undefined ? {} : { namespaces: [namespace] };
    this.#records.set(fullForm(reference), { lastUsedMs, ...namespaces, pushed: { layers } });
    await this.save();
  }

  /** Returns the record, or undefined for an unknown image. */
  get(reference: string): ImageRecord | undefined {
    return this.#records.get(fullForm(reference));
  }

  used(references: Iterable<string>): void {
    const lastUsedMs = this.#options.nowMs();
    for (const reference of references) {
      const key = fullForm(reference);
      this.#records.set(key, { ...this.#records.get(key), lastUsedMs });
    }
  }

  /** Removes the records of all other images, except those added since the images were listed. */
  keep(references: Iterable<string>, listedAtMs = Number.POSITIVE_INFINITY): void {
    const keys = new Set([...references].map(fullForm));
    for (const [key, { lastUsedMs }] of [...this.#records])
      if (!keys.has(key) && lastUsedMs < listedAtMs) this.#records.delete(key);
  }

  /** Writes the records. Resolves also if that fails. */
  save(): Promise<void> {
    this.#saving = this.#saving.then(() => this.#write());
    return this.#saving;
  }

  async #write(): Promise<void> {
    const bytes = Buffer.from(JSON.stringify({ images: Object.fromEntries(this.#records) }));
    const { dir, files = hostFiles, onError } = this.#options;
    await files
      .makeDirectory(dir)
      .then(() => files.write(dir, [{ name: FILE, bytes }]))
      .catch(onError);
  }
}

function parse(json: string): Map<string, ImageRecord> {
  const { images } = JSON.parse(json) as { readonly images: Readonly<Record<string, Partial<ImageRecord>>> };
  return new Map(
    Object.entries(images).map(([reference, { lastUsedMs, namespaces, pushed }]) => [
      reference,
      {
        lastUsedMs: Number(lastUsedMs) || 0,
        ...(Array.isArray(namespaces) && { namespaces: namespaces.map(String) }),
        ...(Array.isArray(pushed?.layers) && { pushed: { layers: pushed.layers.map(String) } }),
      },
    ]),
  );
}
