import { Coordinator, operator } from "./client/coordinator.ts";
import type { Invocation } from "./command/definition.ts";
import type { Flags, FlagValues } from "./command/flag.ts";
import type { GlobalFlags, OutputFormat } from "./command/global-flags.ts";
import { KnownServers } from "./config/known-servers.ts";
import { resolveSettings, type Settings } from "./config/settings.ts";
import { timeoutOf } from "./duration-flag.ts";
import { CliError } from "./errors.ts";
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
  /** Called with the listing instead of printing it. */
  readonly onListing?: (listing: Listing<never>) => void;
}

/** The prepared inputs of a command. */
export interface Context extends Printing {
  readonly settings: Settings;
  /** The value of `--timeout`. */
  readonly timeoutMs: number | undefined;
  /** Aborts at an interrupt such as Ctrl-C, and after the time given by `--timeout`. */
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

/** Returns the inputs for printing, which need no configuration. */
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

const STALE_WARNING =
  "forage: no coordinator that leads can be reached: this may be out of date, and has no usage, reasons for waiting or last heartbeats\n";
/** The time limit for listing the coordinators after the command has done its work. */
const LEARN_LIMIT_MS = 1_000;

/** Runs work with a connection, and closes the connection afterwards. */
export async function withCoordinator<T>(
  context: Context,
  run: (coordinator: Coordinator) => Promise<T>,
): Promise<T> {
  const { settings, signal, world, timeoutMs } = context;
  const endpoint = settings.endpoint();
  const known = new KnownServers(endpoint, world);
  const learnt = settings.hasFixedServers ? [] : known.without([endpoint.server, ...endpoint.otherServers]);
  const otherServers = [...endpoint.otherServers, ...learnt];
  const onStale = (): void => void world.stderr.write(STALE_WARNING);
  const options = { signal, nowMs: world.nowMs, timeoutMs, onStale };
  const coordinator = new Coordinator({ ...endpoint, otherServers }, options);
  try {
    const result = await run(coordinator);
    // A single coordinator is the usual case and has nothing to report.
    if (otherServers.length > 0 && !settings.hasFixedServers && known.isOld) await learn(coordinator, known);
    return result;
  } finally {
    coordinator.close();
  }
}

/**
 * Lists the coordinators of the cluster. A failure does not fail the command, which has done its
 * work, and the delay is limited.
 */
async function learn(coordinator: Coordinator, known: KnownServers): Promise<void> {
  const asked = coordinator.call(operator.listCoordinators, {}, LEARN_LIMIT_MS);
  await asked.then(
    ({ coordinators }) => known.save(preferredFirst(coordinators)),
    (error: unknown) => {
      // Other failures may have ended when the next command runs.
      if (error instanceof CliError && error.code === "DENIED") known.deny();
    },
  );
}

/** Stores the listed coordinators for later commands. */
export function remember(
  context: Context,
  coordinators: readonly { readonly addresses: readonly string[] }[],
): void {
  new KnownServers(context.settings.endpoint(), context.world).save(preferredFirst(coordinators));
}

function preferredFirst(coordinators: readonly { readonly addresses: readonly string[] }[]): string[] {
  return [
    ...coordinators.flatMap(({ addresses: [first] }) => first ?? []),
    ...coordinators.flatMap(({ addresses }) => addresses),
  ];
}

export interface Listing<Row> {
  readonly columns: readonly Column<Row>[];
  readonly rows: readonly Row[];
  readonly json: (row: Row) => unknown;
  /** Returns the name of a row as other commands accept it, such as `pod/web-1`. */
  readonly name: (row: Row) => string;
  /** The message on standard error if there are no rows. */
  readonly none: string;
  /** Whether to print one object instead of a list with one. */
  readonly single?: boolean;
}

/** Prints rows in the format selected by `-o`. */
export function printListing<Row>(context: Printing, listing: Listing<Row>): void {
  const { format, world, paint } = context;
  const { rows, columns } = listing;
  if (context.onListing !== undefined) {
    // Only the functions of the listing itself use its rows.
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

/** Prints one object: as JSON or YAML if `-o` selects it, else as the result of `text`. */
export function printOne(context: Printing, json: () => unknown, text: () => string): void {
  const { format, world } = context;
  world.stdout.write(format === "json" || format === "yaml" ? renderDocument(format, json()) : text());
}

function outputFormat(given: string | undefined): OutputFormat {
  // The parser has validated the choice.
  return (given as OutputFormat | undefined) ?? "table";
}
