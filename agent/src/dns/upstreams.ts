import { readFile, stat } from "node:fs/promises";
import { parseResolvConf } from "../network/resolv-conf.ts";

export interface UpstreamsOptions {
  /** The path of the host's `resolv.conf`. */
  readonly path: string;
  /** The name server's own addresses, which are excluded to prevent a loop. */
  readonly own: readonly string[];
  /** A monotonic clock in milliseconds. */
  readonly monotonicMs: () => number;
}

/** The time for which the file's content is cached. */
const RECHECK_MS = 5_000;

/** The current name servers of the host, from its file. */
export class Upstreams {
  readonly #options: UpstreamsOptions;
  #servers: readonly string[] = [];
  #checkedMs = Number.NEGATIVE_INFINITY;
  #changedMs = Number.NaN;
  #checking: Promise<void> | undefined;

  constructor(options: UpstreamsOptions) {
    this.#options = options;
  }

  /** Returns the name servers; empty if the host has none. */
  async list(): Promise<readonly string[]> {
    if (this.#options.monotonicMs() - this.#checkedMs >= RECHECK_MS) {
      this.#checking ??= this.#check().finally(() => {
        this.#checking = undefined;
      });
      await this.#checking;
    }
    return this.#servers;
  }

  async #check(): Promise<void> {
    const { path, own, monotonicMs } = this.#options;
    try {
      const { mtimeMs } = await stat(path);
      if (mtimeMs !== this.#changedMs) {
        const { nameservers } = parseResolvConf(await readFile(path, "utf8"));
        this.#servers = [...new Set(nameservers.filter((it) => !own.includes(it)))].slice(0, 3);
        this.#changedMs = mtimeMs;
      }
    } catch {
      this.#servers = [];
      this.#changedMs = Number.NaN;
    }
    this.#checkedMs = monotonicMs();
  }
}
