import { readFileSync } from "node:fs";

/** A file of the page, ready to be served. */
export interface Asset {
  readonly type: string;
  /** The content, compressed with gzip. */
  readonly gzip: Buffer;
}

interface StoredAsset {
  readonly type: string;
  /** The compressed content in base64. */
  readonly gzip: string;
}

/**
 * Reads the files of the page from the single file that the build makes. It is read at the first
 * request, so that a coordinator whose dashboard is unused holds none in memory. Later changes of
 * the file have no effect, so that a page never gets scripts of different builds.
 */
export class Assets {
  readonly #path: string;
  #files: ReadonlyMap<string, Asset> | undefined;

  constructor(path: string) {
    this.#path = path;
  }

  /**
   * Returns the file, or undefined if no file has the name. Throws the error of `readFileSync` if
   * the dashboard was not built.
   */
  get(name: string): Asset | undefined {
    this.#files ??= readAssets(this.#path);
    return this.#files.get(name);
  }
}

function readAssets(path: string): ReadonlyMap<string, Asset> {
  const stored = JSON.parse(readFileSync(path, "utf8")) as Readonly<Record<string, StoredAsset>>;
  return new Map(
    Object.entries(stored).map(([name, { type, gzip }]) => [
      name,
      { type, gzip: Buffer.from(gzip, "base64") },
    ]),
  );
}
