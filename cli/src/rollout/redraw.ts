import { displayWidth } from "../output/plain-text.ts";
import type { OutputStream } from "../world.ts";

// For terminals that don't know their size, as serial consoles: they say 0.
const fallbackColumns = 80;
const fallbackRows = 24;

/** A few lines at the bottom of a terminal that are drawn over again and again. */
export class Redraw {
  readonly #stream: OutputStream;
  #drawn = 0;

  constructor(stream: OutputStream) {
    this.#stream = stream;
  }

  /** More would scroll away and could not be drawn over. */
  get maxLines(): number {
    return Math.max(4, (this.#stream.rows || fallbackRows) - 1);
  }

  /** Lines are cut at the terminal's width first and decorated then, as colours take no width. */
  draw(lines: readonly string[], decorate: (line: string, index: number) => string): void {
    const columns = (this.#stream.columns || fallbackColumns) - 1;
    const up = this.#drawn > 0 ? `\u001b[${this.#drawn}A` : "";
    const text = lines.map((line, index) => `\u001b[2K${decorate(cut(line, columns), index)}\n`).join("");
    // Clears the lines that only the previous picture had.
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
