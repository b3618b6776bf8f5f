import { readFileSync } from "node:fs";

/** A file of the page as it is served. */
export interface Asset {
  readonly type: string;
  /** Compressed with gzip. */
  readonly gzip: Buffer;
}

interface StoredAsset {
  readonly type: string;
  /** Base64 of the compressed content. */
  readonly gzip: string;
}

/**
 * Reads the files of the page, which the build puts into one file, at the first request for one: a coordinator whose dashboard
 * is not in use holds none of them in memory. They stay the same until the coordinator ends, so a page never gets scripts of
 * different builds.
 */
export class Assets {
  readonly #path: string;
  #files: ReadonlyMap<string, Asset> | undefined;

  constructor(path: string) {
    this.#path = path;
  }

  /** Returns the file, or undefined if there is none of that name. Throws the error of `readFileSync` if nothing was built. */
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
