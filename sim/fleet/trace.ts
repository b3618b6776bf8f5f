import { createHash } from "node:crypto";

/** The history of a simulation: its last lines as text, and all of it as a hash. */
export class Trace {
  readonly #nowMs: () => number;
  readonly #keep: number;
  readonly #hash = createHash("sha256");
  readonly #echo: ((line: string) => void) | undefined;
  #lines: string[] = [];

  constructor(options: {
    readonly nowMs: () => number;
    readonly keep: number;
    readonly echo?: (line: string) => void;
  }) {
    this.#nowMs = options.nowMs;
    this.#keep = options.keep;
    this.#echo = options.echo;
  }

  add(who: string, what: string): void {
    const line = `${clockText(this.#nowMs())} ${who.padEnd(5)} ${what}`;
    this.#hash.update(line);
    this.#echo?.(line);
    this.#lines.push(line);
    if (this.#lines.length > 2 * this.#keep) this.#lines = this.#lines.slice(-this.#keep);
  }

  last(): readonly string[] {
    return this.#lines.slice(-this.#keep);
  }

  /** Returns a hash that is equal for equal histories. Nothing can be added after it. */
  digest(): string {
    return this.#hash.digest("hex");
  }
}

function clockText(nowMs: number): string {
  return new Date(nowMs).toISOString().slice(11, 23);
}
