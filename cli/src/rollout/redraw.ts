import { displayWidth } from "../output/plain-text.ts";
import type { OutputStream } from "../world.ts";

// The assumed size of terminals that report 0, such as serial consoles.
const FALLBACK_COLUMNS = 80;
const FALLBACK_ROWS = 24;

/** Redraws some lines at the bottom of a terminal. */
export class Redraw {
  readonly #stream: OutputStream;
  #drawn = 0;

  constructor(stream: OutputStream) {
    this.#stream = stream;
  }

  /** The number of lines that can be redrawn. More lines would scroll away. */
  get maxLines(): number {
    return Math.max(4, (this.#stream.rows || FALLBACK_ROWS) - 1);
  }

  /**
   * Draws the lines. They are shortened to the terminal's width before `decorate` adds colours,
   * which occupy no columns.
   */
  draw(lines: readonly string[], decorate: (line: string, index: number) => string): void {
    const columns = (this.#stream.columns || FALLBACK_COLUMNS) - 1;
    const up = this.#drawn > 0 ? `\u001b[${this.#drawn}A` : "";
    const text = lines.map((line, index) => `\u001b[2K${decorate(cut(line, columns), index)}\n`).join("");
    // Clears lines that only the previous drawing had.
    this.#stream.write(`${up}\r${text}\u001b[0J`);
    this.#drawn = lines.length;
  }

  close(): void {
    this.#drawn = 0;
  }
}

function cut(line: string, columns: number): string {
  if (displayWidth(line) <= columns) return line;
  let width = 0;
  let text = "";
  for (const character of line) {
    width += displayWidth(character);
    if (width > columns - 1) break;
    text += character;
  }
  return `${text}…`;
}
