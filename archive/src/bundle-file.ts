import { type FileHandle, open, rename, rm } from "node:fs/promises";
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import { encodeHeader, paddingFor, TAR_END } from "./tar-header.ts";

const compress = promisify(gzip);
/** Excludes leading dots, so that no part leads out of the directory. */
const PATH = /^[\w@][\w.@:-]{0,120}(\/[\w@][\w.@:-]{0,120}){0,5}$/;

interface Member {
  readonly path: string;
  readonly bytes: number;
  readonly problem?: string;
}

/**
 * A tar.gz archive of texts, readable by its owner only. It appears under its path when it is complete. Its first
 * directory is `name`. `contents.json` in it lists all files, with the reason for each missing or incomplete one.
 */
export class BundleFile {
  readonly #path: string;
  readonly #name: string;
  readonly #nowMs: number;
  readonly #file: FileHandle;
  readonly #members: Member[] = [];
  #bytes = 0;

  private constructor(path: string, name: string, nowMs: number, file: FileHandle) {
    this.#path = path;
    this.#name = name;
    this.#nowMs = nowMs;
    this.#file = file;
  }

  /**
   * Creates the archive. Rejects with EEXIST if the partial file exists. The caller must call `finish` or `discard`.
   */
  static async create(path: string, { name, nowMs }: { name: string; nowMs: number }): Promise<BundleFile> {
    return new BundleFile(path, name, nowMs, await open(partialOf(path), "wx", 0o600));
  }

  /** The missing or incomplete files so far. */
  get problems(): readonly { readonly path: string; readonly problem: string }[] {
    return this.#members.flatMap(({ path, problem }) => (problem === undefined ? [] : [{ path, problem }]));
  }

  /** Adds a file. A file with a problem and without content is only listed. Throws RangeError for a malformed path. */
  async add(path: string, content: Uint8Array, problem = ""): Promise<void> {
    if (!PATH.test(path)) throw new RangeError(`"${path}" can't be the path of a file in the archive`);
    this.#members.push({ path, bytes: content.length, ...(problem !== "" && { problem }) });
    if (content.length > 0 || problem === "") await this.#write(path, content);
  }

  /** Completes the archive, and returns its size in bytes. */
  async finish(): Promise<number> {
    await this.#write("contents.json", Buffer.from(`${JSON.stringify(this.#members, undefined, 2)}\n`));
    await this.#append(TAR_END);
    await this.#file.sync();
    await this.#file.close();
    await rename(partialOf(this.#path), this.#path);
    return this.#bytes;
  }

  /** Removes the incomplete archive. */
  async discard(): Promise<void> {
    await this.#file.close();
    await rm(partialOf(this.#path), { force: true });
  }

  #write(path: string, content: Uint8Array): Promise<void> {
    const header = encodeHeader({
      ...{ path: `${this.#name}/${path}`, type: "file", mode: 0o600, target: "" },
      ...{ modifiedMs: Math.floor(this.#nowMs / 1000) * 1000, sizeBytes: content.length },
    });
    return this.#append(Buffer.concat([header, content, paddingFor(content.length)]));
  }

  /** Appends bytes as a separate gzip member; all members together are one archive. */
  async #append(bytes: Uint8Array): Promise<void> {
    const compressed = await compress(bytes);
    await this.#file.writeFile(compressed);
    this.#bytes += compressed.length;
  }
}

function partialOf(path: string): string {
  return `${path}.partial`;
}
