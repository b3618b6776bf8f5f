import { relative } from "node:path";
import type { Log } from "@forage/common/log";

/** A file of the agent's data directory whose content is not what was written. */
export interface Damage {
  /** Relative to the data directory. */
  readonly file: string;
  readonly reason: string;
  /** The way in which the agent replaces the damaged state. */
  readonly remedy: string;
}

/** Reports a damaged file. */
export type NoteDamage = (path: string, reason: string, remedy: string) => void;

export interface DamageReportsOptions {
  readonly dataDir: string;
  readonly log: Pick<Log, "warn">;
}

// All files of a directory may be damaged at once. The coordinator receives the first few, and the log contains all.
const KEPT_MAX = 20;

/** Collects the damaged files found since the agent's start, for the log and for the node's conditions. */
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

  /** Returns one sentence for each damaged file, or undefined if there is none. */
  summary(): string | undefined {
    if (this.#count === 0) return undefined;
    const sentences = this.#found.map(
      ({ file, reason, remedy }) => `${file} is damaged (${reason}): ${remedy}`,
    );
    const rest = this.#count - this.#found.length;
    return [...sentences, ...(rest > 0 ? [`${rest} more files are damaged`] : [])].join("; ");
  }

  /** Calls the listener for each further damaged file. Returns a function that unsubscribes. */
  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }
}
