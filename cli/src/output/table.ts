import type { Paint, Style } from "./paint.ts";
import { displayWidth, plainText } from "./plain-text.ts";

export interface Column<Row> {
  readonly title: string;
  readonly value: (row: Row) => string;
  /** Whether the column is shown only with `-o wide`. */
  readonly wide?: boolean;
  /** Whether the column is shown only if some row has a value for it. */
  readonly whenFilled?: boolean;
  readonly alignRight?: boolean;
  readonly style?: (row: Row) => Style | undefined;
}

const GAP = "  ";

/**
 * Renders aligned lines below a header. Empty cells are shown as `-`. Each line ends with a line
 * feed.
 */
export function renderTable<Row>(
  columns: readonly Column<Row>[],
  rows: readonly Row[],
  { wide, paint }: { readonly wide: boolean; readonly paint: Paint },
): string {
  const isFilled = (column: Column<Row>): boolean => rows.some((row) => column.value(row) !== "");
  const shown = columns.filter(
    (column) => (wide || column.wide !== true) && (column.whenFilled !== true || isFilled(column)),
  );
  const cells = rows.map((row) => shown.map((column) => plainText(column.value(row)) || "-"));
  const widths = shown.map(({ title }, index) =>
    Math.max(title.length, ...cells.map((line) => displayWidth(line[index] ?? ""))),
  );
  const titles = shown.map(({ title }) => title);
  const lines = [joinCells(titles, widths, shown, () => undefined, paint)];
  for (const [index, line] of cells.entries()) {
    const row = rows[index] as Row;
    lines.push(joinCells(line, widths, shown, (column) => column.style?.(row), paint));
  }
  return `${lines.join("\n")}\n`;
}

function joinCells<Row>(
  cells: readonly string[],
  widths: readonly number[],
  columns: readonly Column<Row>[],
  styleOf: (column: Column<Row>) => Style | undefined,
  paint: Paint,
): string {
  const parts = columns.map((column, index) => {
    const cell = cells[index] ?? "";
    const padding = " ".repeat(Math.max(0, (widths[index] ?? 0) - displayWidth(cell)));
    const style = styleOf(column);
    const text = style === undefined ? cell : paint(style, cell);
    if (column.alignRight === true) return padding + text;
    return index === columns.length - 1 ? text : text + padding;
  });
  return parts.join(GAP);
}
