import { relative } from "node:path";
import type { Log } from "@forage/common/log";

/** A file of the agent's data directory that can't be read as it was written. */
export interface Damage {
  /** Relative to the data directory. */
  readonly file: string;
  readonly reason: string;
  /** The agent's substitute for the damaged state. */
  readonly remedy: string;
}

/** Takes notice of a damaged file. */
export type NoteDamage = (path: string, reason: string, remedy: string) => void;

export interface DamageReportsOptions {
  readonly dataDir: string;
  readonly log: Pick<Log, "warn">;
}

// All files of a directory may be damaged at once. The coordinator receives the first few, and the log has all of them.
const KEPT_MAX = 20;

/** Collects the damaged files that this life of the agent has found, for the log and for the node's conditions. */
export class DamageReports {
  readonly #options: DamageReportsOptions;
  readonly #found: Damage[] = [];
  readonly #listeners = new Set<() => void>();
  #count = 0;

  constructor(options: DamageReportsOptions) {
    this.#options = options;
  }

  readonly note: NoteDamage = (path, reason, remedy) => {
    const { dataDir, log } = this.#options;
    const file = relative(dataDir, path);
    log.warn({ event: "data-file-damaged", file, reason, remedy });
    this.#count += 1;
    if (this.#found.length < KEPT_MAX) this.#found.push({ file, reason, remedy });
    for (const listener of this.#listeners) listener();
  };

  /** Returns one sentence for each damaged file; undefined if there is none. */
  summary(): string | undefined {
    if (this.#count === 0) return undefined;
    const sentences = this.#found.map(
      ({ file, reason, remedy }) => `${file} is damaged (${reason}): ${remedy}`,
    );
    const rest = this.#count - this.#found.length;
    return [...sentences, ...(rest > 0 ? [`${rest} more files are damaged`] : [])].join("; ");
  }

  /** Calls at each further damage. Returns how to stop. */
  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }
}
