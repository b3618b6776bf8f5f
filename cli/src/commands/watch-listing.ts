import { CallError } from "../client/explain.ts";
import type { Context, Listing } from "../context.ts";
import { CliError } from "../errors.ts";
import { renderDocument } from "../output/document.ts";
import { plain } from "../output/paint.ts";
import { renderTable } from "../output/table.ts";
import { pause } from "../pause.ts";
import { Redraw } from "../rollout/redraw.ts";

/**
 * The interval of listings: short enough to follow starting pods, and long enough to cause little
 * load.
 */
const PAUSE_MS = 500;
/** Columns that change with time alone. */
const TIMES = new Set(["AGE", "SEEN", "CHANGED"]);

type AnyListing = Listing<never>;

/** Shows the listing repeatedly until the command is interrupted or times out. */
export async function watchListing(
  context: Context,
  show: (context: Context) => Promise<void>,
): Promise<never> {
  const { world, format, signal } = context;
  const isForPeople = format === "table" || format === "wide";
  const output =
    isForPeople && world.stdout.isTTY === true ? new RedrawnListing(context) : new WrittenListing(context);
  for (let isFirst = true, isLost = false; ; isFirst = false) {
    try {
      await show({ ...context, onListing: (listing) => output.show(listing) });
      if (isLost) world.stderr.write("the coordinator answers again\n");
      isLost = false;
    } catch (error) {
      if (isFirst || !(error instanceof CliError)) throw error;
      if (error.code === "NOT_FOUND") output.gone();
      else if (!(error instanceof CallError && error.passing)) throw error;
      else if (!isLost) {
        world.stderr.write("the coordinator doesn't answer; trying again\n");
        isLost = true;
      }
    }
    await pause(PAUSE_MS, signal);
  }
}

/** Redraws the table in place. */
class RedrawnListing {
  readonly #context: Context;
  readonly #redraw: Redraw;

  constructor(context: Context) {
    this.#context = context;
    this.#redraw = new Redraw(context.world.stdout);
  }

  show(listing: AnyListing): void {
    // Lines are shortened to the terminal's width before they are coloured.
    const lines =
      listing.rows.length === 0 ? [listing.none] : linesOf({ ...this.#context, paint: plain }, listing);
    const { maxLines } = this.#redraw;
    const rest = lines.length - maxLines;
    const shown = rest <= 0 ? lines : [...lines.slice(0, maxLines - 1), `… and ${rest + 1} more`];
    this.#redraw.draw(shown, (line) => line);
  }

  gone(): void {
    this.#redraw.draw(["it was deleted"], (line) => line);
  }
}

/** Prints a line for each row that is new, changed or removed. */
class WrittenListing {
  readonly #context: Context;
  #last = new Map<string, string>();
  #hasTitle = false;

  constructor(context: Context) {
    this.#context = context;
  }

  show(listing: AnyListing): void {
    const { world, format } = this.#context;
    const lines = linesOf(this.#context, listing);
    const now = new Map<string, string>();
    for (const [index, row] of listing.rows.entries()) {
      const key = keyOf(listing, row);
      const state = stateOf(this.#context, listing, row);
      now.set(key, state);
      if (this.#last.get(key) === state) continue;
      if (format === "json") world.stdout.write(`${JSON.stringify(listing.json(row))}\n`);
      else if (format === "yaml") world.stdout.write(`---\n${renderDocument("yaml", listing.json(row))}`);
      else if (format === "name") world.stdout.write(`${listing.name(row)}\n`);
      else this.#writeRow(lines[0] ?? "", lines[index + 1] ?? "");
    }
    this.#report([...this.#last.keys()].filter((key) => !now.has(key)));
    this.#last = now;
  }

  gone(): void {
    this.#report([...this.#last.keys()]);
    this.#last = new Map();
  }

  #writeRow(title: string, line: string): void {
    this.#context.world.stdout.write(this.#hasTitle ? `${line}\n` : `${title}\n${line}\n`);
    this.#hasTitle = true;
  }

  #report(keys: readonly string[]): void {
    for (const key of keys) this.#context.world.stderr.write(`${key} was deleted\n`);
  }
}

function linesOf({ format, paint }: Context, { columns, rows }: AnyListing): string[] {
  return renderTable(columns, rows, { wide: format === "wide", paint })
    .trimEnd()
    .split("\n");
}

function keyOf({ json, name }: AnyListing, row: never): string {
  const { namespace } = json(row) as { readonly namespace?: string };
  return namespace === undefined || namespace === "" ? name(row) : `${namespace} ${name(row)}`;
}

/** Returns the values of the shown columns except times, which change without an event. */
function stateOf({ format }: Context, { columns }: AnyListing, row: never): string {
  const shown = columns.filter(
    ({ wide, title }) => (format === "wide" || wide !== true) && !TIMES.has(title),
  );
  return JSON.stringify(shown.map(({ value }) => value(row)));
}
