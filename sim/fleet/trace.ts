import { createHash } from "node:crypto";

interface Line {
  readonly atMs: number;
  readonly who: string;
  readonly what: string;
}

/** The history of a simulation: its last lines as text, and all of it as a hash. */
export class Trace {
  readonly #nowMs: () => number;
  readonly #keep: number;
  readonly #hash = createHash("sha256");
  readonly #echo: ((line: string) => void) | undefined;
  #lines: Line[] = [];

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
    const line = { atMs: this.#nowMs(), who, what };
    this.#hash.update(`${line.atMs} ${who} ${what}`);
    this.#echo?.(textOf(line));
    this.#lines.push(line);
    if (this.#lines.length > 2 * this.#keep) this.#lines = this.#lines.slice(-this.#keep);
  }

  last(): readonly string[] {
    return this.#lines.slice(-this.#keep).map(textOf);
  }

  /** Returns a hash that is equal for equal histories. Nothing can be added after it. */
  digest(): string {
    return this.#hash.digest("hex");
  }
}

function textOf({ atMs, who, what }: Line): string {
  return `${new Date(atMs).toISOString().slice(11, 23)} ${who.padEnd(5)} ${what}`;
}
