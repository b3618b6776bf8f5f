import type { Clock } from "../../clock.ts";
import { restoreHelpers } from "./helper-programs.ts";

export interface HelperWatchOptions {
  readonly dir: string;
  /** Names of OCI runtimes, like runc, that may have started a container. */
  readonly ociRuntimes: readonly string[];
  readonly clock: Clock;
  readonly noteDamage: (path: string, reason: string, remedy: string) => void;
  readonly onError: (error: unknown) => void;
}

/** A container whose program is missing can't be stopped or entered. A check reads only a few small files. */
export const CHECK_INTERVAL_MS = 30_000;

/** Restores the helper programs that running containers depend on when they are missing or damaged. */
export class HelperWatch {
  readonly #options: HelperWatchOptions;
  /** The damage that the last check found. Each damage is reported once. */
  #found: ReadonlySet<string> = new Set();
  #wereWritten = false;
  #checking: Promise<void> = Promise.resolve();
  #cancel: (() => void) | undefined;
  #closed = false;

  /** Resolves after the first check. */
  static async start(options: HelperWatchOptions): Promise<HelperWatch> {
    const watch = new HelperWatch(options);
    await watch.#checkAndRepeat();
    return watch;
  }

  private constructor(options: HelperWatchOptions) {
    this.#options = options;
  }

  /** Resolves once no check is running. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#cancel?.();
    await this.#checking;
  }

  /** Restores missing and damaged programs. Never rejects. */
  async check(): Promise<void> {
    const { dir, ociRuntimes, noteDamage, onError } = this.#options;
    const found = new Set<string>();
    const note: HelperWatchOptions["noteDamage"] = (path, reason, remedy) => {
      const damage = `${path}: ${reason}: ${remedy}`;
      if (!this.#found.has(damage)) noteDamage(path, reason, remedy);
      found.add(damage);
    };
    try {
      await restoreHelpers(dir, ociRuntimes, note, { wereWritten: this.#wereWritten });
      this.#wereWritten = true;
    } catch (error) {
      onError(error);
    }
    this.#found = found;
  }

  async #checkAndRepeat(): Promise<void> {
    this.#checking = this.check();
    await this.#checking;
    if (this.#closed) return;
    this.#cancel = this.#options.clock.schedule(CHECK_INTERVAL_MS, () => void this.#checkAndRepeat());
  }
}
