import { Coordinator } from "./client/coordinator.ts";
import type { Invocation } from "./command/definition.ts";
import type { Flags, FlagValues } from "./command/flag.ts";
import type { GlobalFlags, OutputFormat } from "./command/global-flags.ts";
import { resolveSettings, type Settings } from "./config/settings.ts";
import { timeoutOf } from "./duration-flag.ts";
import { renderDocument } from "./output/document.ts";
import { type Paint, paintFor } from "./output/paint.ts";
import { type Column, renderTable } from "./output/table.ts";
import type { World } from "./world.ts";

/** The inputs that a command needs to print its result. */
export interface Printing {
  readonly world: World;
  readonly format: OutputFormat;
  /** Colours for standard output. */
  readonly paint: Paint;
  /** Receives the listing in place of standard output. */
  readonly onListing?: (listing: Listing<never>) => void;
}

/** The prepared inputs of a command. */
export interface Context extends Printing {
  readonly settings: Settings;
  /** The value of `--timeout`. */
  readonly timeoutMs: number | undefined;
  /** Aborted by an interrupt such as Ctrl-C, and after the time given by `--timeout`. */
  readonly signal: AbortSignal;
  /** Colours for standard error. */
  readonly paintError: Paint;
}

export function contextOf<F extends Flags>({ flags, world }: Invocation<F>): Context {
  return {
    ...printingOf({ flags, world }),
    settings: resolveSettings(flags, world),
    timeoutMs: timeoutOf(flags.timeout),
    signal: world.interrupted,
    paintError: paintFor(world.stderr, world.env, flags["no-color"]),
  };
}

/** Needs no configuration. */
export function printingOf({
  flags,
  world,
}: {
  readonly flags: FlagValues<GlobalFlags>;
  readonly world: World;
}): Printing {
  return {
    world,
    format: outputFormat(flags.output),
    paint: paintFor(world.stdout, world.env, flags["no-color"]),
  };
}

/** Connects, and closes the connection in the end. */
export async function withCoordinator<T>(
  context: Context,
  run: (coordinator: Coordinator) => Promise<T>,
): Promise<T> {
  const { settings, signal, world, timeoutMs } = context;
  const coordinator = new Coordinator(settings.endpoint(), { signal, nowMs: world.nowMs, timeoutMs });
  try {
    return await run(coordinator);
  } finally {
    coordinator.close();
  }
}

export interface Listing<Row> {
  readonly columns: readonly Column<Row>[];
  readonly rows: readonly Row[];
  readonly json: (row: Row) => unknown;
  /** Returns the name that other commands accept: `pod/web-1`. */
  readonly name: (row: Row) => string;
  /** The message on standard error when there are no rows. */
  readonly none: string;
  /** One object instead of a list with one. */
  readonly single?: boolean;
}

/** Prints rows in the format that `-o` selects. */
export function printListing<Row>(context: Printing, listing: Listing<Row>): void {
  const { format, world, paint } = context;
  const { rows, columns } = listing;
  if (context.onListing !== undefined) {
    // Only the listing's own functions read its rows.
    context.onListing(listing as unknown as Listing<never>);
    return;
  }
  switch (format) {
    case "json":
    case "yaml": {
      const values = rows.map(listing.json);
      world.stdout.write(renderDocument(format, listing.single === true ? values[0] : values));
      return;
    }
    case "name":
      world.stdout.write(rows.map((row) => `${listing.name(row)}\n`).join(""));
      return;
    case "table":
    case "wide":
      if (rows.length === 0) world.stderr.write(`${listing.none}\n`);
      else world.stdout.write(renderTable(columns, rows, { wide: format === "wide", paint }));
      return;
    default:
      format satisfies never;
  }
}

/** Prints one thing: as a document for programs, else as `text` says. */
export function printOne(context: Printing, json: () => unknown, text: () => string): void {
  const { format, world } = context;
  world.stdout.write(format === "json" || format === "yaml" ? renderDocument(format, json()) : text());
}

function outputFormat(given: string | undefined): OutputFormat {
  // The parser has checked it against the choices.
  return (given as OutputFormat | undefined) ?? "table";
}
