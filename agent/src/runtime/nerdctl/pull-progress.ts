/** Reads what `nerdctl pull` paints ten times a second, to tell a slow pull from one that hangs. */
export class PullProgress {
  readonly #lines = new Map<string, string>();
  #rest = "";

  /** True if something moved: a bar, a byte count, a step. */
  push(text: string): boolean {
    const lines = `${this.#rest}${text}`.split("\n");
    this.#rest = (lines.pop() ?? "").slice(-LINE_MAX_LENGTH);
    return lines.map((line) => this.#take(line)).includes(true);
  }

  /** True while layers are on their way; then they are unpacked, of which nothing is told. */
  get downloading(): boolean {
    return (
      this.#lines.size === 0 ||
      [...this.#lines.values()].some((it) => /resolving|waiting|downloading/.test(it))
    );
  }

  #take(line: string): boolean {
    const plain = line.replace(COLOURS, "").replace(CLOCKWORK, "").trim();
    const key = plain.split(" ", 1)[0] ?? "";
    if (plain === "" || this.#lines.get(key) === plain) return false;
    if (this.#lines.size >= LINES_MAX && !this.#lines.has(key)) return false;
    this.#lines.set(key, plain);
    return true;
  }
}

const LINE_MAX_LENGTH = 1_000;
// An image has at most 127 layers.
const LINES_MAX = 500;
const ESCAPE = String.fromCharCode(27);
const COLOURS = new RegExp(`${ESCAPE}\\[[0-9;]*[A-Za-z]`, "g");
// Moves by itself, even when nothing comes: the time, and the mean rate that falls with it.
const CLOCKWORK = /elapsed: *[0-9.]+ *s|\([^)]*\/s\)/g;
