import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

export interface Column<Row> {
  readonly title: string;
  readonly cell: (row: Row) => ComponentChildren;
  /** Returns the value by which to sort; undefined if the table can't be sorted by this column. */
  readonly sort?: (row: Row) => string | number;
  /** The width of the column as in a CSS grid: "2fr", "6rem". */
  readonly width: string;
  /** Whether the column is hidden on small screens. */
  readonly wide?: boolean;
}

export interface VirtualTableProps<Row> {
  readonly label: string;
  readonly rows: readonly Row[];
  readonly columns: readonly Column<Row>[];
  readonly keyOf: (row: Row) => string;
  /** Returns the address of a row's page; undefined if it has none. */
  readonly hrefOf?: ((row: Row) => string | undefined) | undefined;
  readonly empty: string;
}

/** The height of a row, the same as in the style sheet. */
const ROW_PX = 36;
/**
 * The number of rows rendered above and below the visible ones, so that scrolling shows no gaps.
 */
const SPARE_ROWS = 8;
/** The most rows without a scroll bar of the table's own. */
const MAX_SHOWN_ROWS = 400;

/**
 * A table of any length that renders only the visible rows. Arrow keys, Page Up, Page Down, Home
 * and End move the focus, and Enter opens the row.
 */
export function VirtualTable<Row>(props: VirtualTableProps<Row>) {
  const { label, columns, keyOf, hrefOf, empty } = props;
  const [order, setOrder] = useState<{ readonly by: string; readonly down: boolean }>();
  const rows = sorted(props, order);
  const box = useRef<HTMLDivElement>(null);
  const [first, count] = useWindow(box, rows.length);
  const [active, setActive] = useState(0);
  const isMoving = useRef(false);
  const shown = rows.slice(first, first + count);
  const grid = columns.map(({ width }) => width).join(" ");
  const narrow = columns.flatMap(({ width, wide }) => (wide ? [] : [width])).join(" ");
  const move = (event: KeyboardEvent): void => {
    const to = target(event.key, active, rows.length, Math.floor((box.current?.clientHeight ?? 0) / ROW_PX));
    if (to === undefined) return;
    event.preventDefault();
    isMoving.current = true;
    setActive(to);
    scrollTo(box.current, to);
  };
  useFocus(box, active, first, isMoving);
  return (
    <div
      class="table"
      role="table"
      aria-label={label}
      aria-rowcount={rows.length + 1}
      style={{ "--grid": grid, "--narrow": narrow }}
    >
      <TableHead columns={columns} order={order} onOrder={setOrder} />
      {rows.length === 0 && <p class="empty">{empty}</p>}
      <div
        class="rows"
        role="rowgroup"
        ref={box}
        onKeyDown={move}
        style={{ height: `${Math.min(rows.length, MAX_SHOWN_ROWS) * ROW_PX}px` }}
      >
        <div class="space" role="presentation" style={{ height: `${rows.length * ROW_PX}px` }}>
          {shown.map((row, index) => (
            <TableRow
              key={keyOf(row)}
              row={row}
              index={first + index}
              columns={columns}
              href={hrefOf?.(row)}
              isActive={first + index === active}
              onFocus={setActive}
            />
          ))}
        </div>
      </div>
    </div>
  );
}

function TableHead<Row>({
  columns,
  order,
  onOrder,
}: {
  readonly columns: readonly Column<Row>[];
  readonly order: { readonly by: string; readonly down: boolean } | undefined;
  readonly onOrder: (order: { readonly by: string; readonly down: boolean }) => void;
}) {
  return (
    <div role="rowgroup">
      <div class="row titles" role="row" aria-rowindex={1}>
        {columns.map(({ title, sort, wide }) => {
          const own = order?.by === title;
          const sorting = own ? (order.down ? "descending" : "ascending") : undefined;
          return (
            <div key={title} role="columnheader" aria-sort={sorting} class={wide ? "wide" : undefined}>
              {sort === undefined ? (
                title
              ) : (
                <button type="button" onClick={() => onOrder({ by: title, down: own && !order.down })}>
                  {title}
                  <span aria-hidden="true">{own ? (order.down ? " ↓" : " ↑") : ""}</span>
                </button>
              )}
            </div>
          );
        })}
      </div>
    </div>
  );
}

function TableRow<Row>({
  row,
  index,
  columns,
  href,
  isActive,
  onFocus,
}: {
  readonly row: Row;
  readonly index: number;
  readonly columns: readonly Column<Row>[];
  readonly href: string | undefined;
  readonly isActive: boolean;
  readonly onFocus: (index: number) => void;
}) {
  return (
    <div class="row" role="row" aria-rowindex={index + 2} style={{ top: `${index * ROW_PX}px` }}>
      {columns.map(({ title, cell, wide }, at) => (
        <div key={title} role="cell" class={wide ? "wide" : undefined}>
          {at === 0 ? (
            <RowHead href={href} index={index} isActive={isActive} onFocus={onFocus}>
              {cell(row)}
            </RowHead>
          ) : (
            cell(row)
          )}
        </div>
      ))}
    </div>
  );
}

/** The focusable cell of a row: a link, or plain text if the row has no page. */
function RowHead({
  href,
  index,
  isActive,
  onFocus,
  children,
}: {
  readonly href: string | undefined;
  readonly index: number;
  readonly isActive: boolean;
  readonly onFocus: (index: number) => void;
  readonly children: ComponentChildren;
}) {
  const focus = { "data-index": index, tabIndex: isActive ? 0 : -1, onFocus: () => onFocus(index) };
  return href === undefined ? (
    <span {...focus}>{children}</span>
  ) : (
    <a href={href} {...focus}>
      {children}
    </a>
  );
}

function sorted<Row>(
  { rows, columns }: VirtualTableProps<Row>,
  order: { readonly by: string; readonly down: boolean } | undefined,
): readonly Row[] {
  const value = columns.find(({ title }) => title === order?.by)?.sort;
  if (value === undefined || order === undefined) return rows;
  const sign = order.down ? -1 : 1;
  return [...rows].sort((a, b) => {
    const [left, right] = [value(a), value(b)];
    return left < right ? -sign : left > right ? sign : 0;
  });
}

/** Returns the index of the first row to render, and the number of rows. */
function useWindow(box: { readonly current: HTMLDivElement | null }, rows: number): [number, number] {
  const [seen, setSeen] = useState<[number, number]>([0, 40]);
  useLayoutEffect(() => {
    const element = box.current;
    if (element === null) return undefined;
    const measure = (): void => {
      const first = Math.max(0, Math.floor(element.scrollTop / ROW_PX) - SPARE_ROWS);
      const count = Math.ceil(element.clientHeight / ROW_PX) + 2 * SPARE_ROWS;
      setSeen((before) => (before[0] === first && before[1] === count ? before : [first, count]));
    };
    measure();
    const resized = new ResizeObserver(measure);
    resized.observe(element);
    element.addEventListener("scroll", measure, { passive: true });
    return () => {
      resized.disconnect();
      element.removeEventListener("scroll", measure);
    };
  }, [box, rows]);
  return seen;
}

/**
 * Moves the focus to the active row once it is rendered, if the focus is in the table. A key may
 * move so far that the row with the focus is removed before the other row is rendered.
 */
function useFocus(
  box: { readonly current: HTMLDivElement | null },
  active: number,
  first: number,
  isMoving: { current: boolean },
): void {
  useEffect(() => {
    const element = box.current;
    if (element === null || !(isMoving.current || element.contains(document.activeElement))) return;
    const row = element.querySelector<HTMLElement>(`[data-index="${active}"]`);
    if (row === null) return;
    isMoving.current = false;
    row.focus({ preventScroll: true });
  }, [active, first]);
}

function target(key: string, active: number, rows: number, page: number): number | undefined {
  const last = rows - 1;
  const moves: Readonly<Record<string, number>> = {
    ArrowDown: active + 1,
    ArrowUp: active - 1,
    PageDown: active + page,
    PageUp: active - page,
    Home: 0,
    End: last,
  };
  const to = moves[key];
  return to === undefined ? undefined : Math.max(0, Math.min(to, last));
}

function scrollTo(box: HTMLDivElement | null, index: number): void {
  if (box === null) return;
  const top = index * ROW_PX;
  if (top < box.scrollTop) box.scrollTop = top;
  else if (top + ROW_PX > box.scrollTop + box.clientHeight) box.scrollTop = top + ROW_PX - box.clientHeight;
}
