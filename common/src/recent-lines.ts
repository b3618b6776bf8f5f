/** Longer lines are truncated, so that a single line can't displace all others. */
const MAX_LINE_LENGTH = 16 * 1024;

/** Keeps the newest lines of a log in bounded memory. */
export class RecentLines {
  readonly #maxLength: number;
  #lines: string[] = [];
  #first = 0;
  #length = 0;

  /** `maxLength` is the limit in characters. */
  constructor(maxLength: number) {
    this.#maxLength = maxLength;
  }

  /** Adds one line, including its line break. */
  add(line: string): void {
    const kept = line.length <= MAX_LINE_LENGTH ? line : `${line.slice(0, MAX_LINE_LENGTH)}…\n`;
    this.#lines.push(kept);
    this.#length += kept.length;
    while (this.#length > this.#maxLength) {
      this.#length -= this.#lines[this.#first]?.length ?? 0;
      this.#first++;
    }
    // Lines are moved rarely, so adding one takes constant time on average.
    if (this.#first <= this.#lines.length / 2) return;
    this.#lines = this.#lines.slice(this.#first);
    this.#first = 0;
  }

  /** Returns the lines, oldest first. */
  text(): string {
    return this.#lines.slice(this.#first).join("");
  }
}
