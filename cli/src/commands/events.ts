import { Event, type EventFilter } from "@forage/proto/forage/operator/v1/operator";
import { type Coordinator, operator } from "../client/coordinator.ts";
import { CallError } from "../client/explain.ts";
import { defineCommand } from "../command/definition.ts";
import { type Context, contextOf, printListing, withCoordinator } from "../context.ts";
import { durationFlag } from "../duration-flag.ts";
import { CliError } from "../errors.ts";
import { EXIT, type ExitCode } from "../exit-code.ts";
import { renderDocument } from "../output/document.ts";
import { pause } from "../pause.ts";
import { eventColumns, eventLine } from "../view/events.ts";
import { toWireTime } from "../view/timestamp.ts";
import { eventFilter } from "./event-query.ts";
import { assertOneChoice } from "./namespace-choice.ts";
import { parseObjectReference, parseReference } from "./reference.ts";

const DEFAULT_LIMIT = 500;
/** The number of past events that `--watch` shows first, for context. */
const SHOWN_BEFORE_WATCH = 20;
const FIRST_PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 5_000;

interface Query {
  /** The namespace; empty means all namespaces and nodes. */
  readonly namespace: string;
  readonly filter: EventFilter;
  readonly limit: number | undefined;
}

export const events = defineCommand({
  name: "events",
  summary: "Show what was decided and what happened, and why",
  details: `The oldest event comes first. An event that happens again within minutes increases its count. The coordinator keeps about 10,000 events.
With --watch and -o json there is one JSON object a line.`,
  flags: {
    "all-namespaces": { type: "switch", short: "A", help: "of all namespaces and of nodes" },
    for: {
      type: "text",
      hint: "KIND/NAME",
      help: "only what is about this: a resource and its pods, pod/NAME, node/NAME, secret/NAME, certificate/HOSTNAME and the like",
    },
    type: { type: "text", hint: "TYPE", choices: ["Normal", "Warning"], help: "only of this type" },
    reason: { type: "text", hint: "REASON", help: "only with this reason, such as RolledBack" },
    since: { type: "text", hint: "DURATION", help: "only those of the last 10m, 2h or the like" },
    limit: { type: "text", hint: "COUNT", help: `only the newest so many; ${DEFAULT_LIMIT} by default` },
    watch: {
      type: "switch",
      short: "w",
      help: `keep running and show new events, after the last ${SHOWN_BEFORE_WATCH}`,
    },
  },
  run: async (invocation) => {
    const { flags } = invocation;
    const context = contextOf(invocation);
    assertOneChoice(flags);
    const about = flags.for === undefined ? { kind: "", name: "" } : parseAbout(flags.for);
    const sinceMs = flags.since === undefined ? undefined : durationFlag("--since", flags.since);
    const query: Query = {
      // Nodes, certificates and priority classes have no namespace.
      namespace: flags["all-namespaces"] || isOfCluster(about.kind) ? "" : context.settings.namespace,
      filter: eventFilter({
        ...about,
        type: flags.type ?? "",
        reason: flags.reason ?? "",
        since: sinceMs === undefined ? undefined : toWireTime(context.world.nowMs() - sinceMs),
      }),
      limit: flags.limit === undefined ? undefined : parseLimit(flags.limit),
    };
    return withCoordinator(context, (coordinator) =>
      flags.watch ? watch(context, coordinator, query) : list(context, coordinator, query),
    );
  },
});

async function list(context: Context, coordinator: Coordinator, query: Query): Promise<ExitCode> {
  const { namespace, filter, limit = DEFAULT_LIMIT } = query;
  const found = await coordinator.call(operator.listEvents, { namespace, filter, after: 0n, limit });
  printListing(context, {
    columns: eventColumns({ nowMs: context.world.nowMs(), withNamespace: namespace === "" }),
    rows: found.events,
    json: Event.toJSON,
    name: ({ kind, name }) => `${kind}/${name}`,
    none: namespace === "" ? "no events" : `no events in namespace "${namespace}"`,
  });
  return EXIT.ok;
}

/** Prints events until interrupted. After a broken stream, continues at the same position. */
async function watch(context: Context, coordinator: Coordinator, query: Query): Promise<ExitCode> {
  const { namespace, filter, limit = SHOWN_BEFORE_WATCH } = query;
  const { world, signal } = context;
  const before = await coordinator.call(operator.listEvents, { namespace, filter, after: 0n, limit });
  for (const event of before.events) print(context, query, event);
  let after = before.sequence;
  for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS)) {
    try {
      const stream = coordinator.stream(operator.watchEvents, { namespace, filter, after });
      for await (const batch of stream) {
        pauseMs = FIRST_PAUSE_MS;
        if (batch.gap) world.stderr.write("some events are missing: they are no longer kept\n");
        for (const event of batch.events) print(context, query, event);
        after = batch.sequence;
      }
    } catch (error) {
      if (!(error instanceof CallError && error.passing)) throw error;
    }
    await pause(pauseMs * world.random(), signal);
  }
}

function print({ format, world, paint }: Context, { namespace }: Query, event: Event): void {
  switch (format) {
    case "json":
      world.stdout.write(`${JSON.stringify(Event.toJSON(event))}\n`);
      return;
    case "yaml":
      world.stdout.write(`---\n${renderDocument("yaml", Event.toJSON(event))}`);
      return;
    case "name":
      world.stdout.write(`${event.kind}/${event.name}\n`);
      return;
    case "table":
    case "wide":
      world.stdout.write(eventLine(event, namespace === "", paint));
      return;
    default:
      format satisfies never;
  }
}

function parseAbout(text: string): { readonly kind: string; readonly name: string } {
  // Certificates are accepted only here, because no other command refers to them by such a name.
  const certificate = /^certificates?\/([^/]+)$/.exec(text)?.[1];
  if (certificate !== undefined) return { kind: "certificate", name: certificate };
  const object = parseObjectReference(text);
  if (object !== undefined) return object;
  const reference = parseReference(text);
  if (reference === undefined)
    throw new CliError(
      "USAGE",
      `--for: its kind is missing: container_service/${text}, pod/${text}, node/${text}`,
    );
  return { kind: reference.what === "resource" ? reference.kind : reference.what, name: reference.name };
}

function isOfCluster(kind: string): boolean {
  return kind === "node" || kind === "priority_class" || kind === "certificate";
}

function parseLimit(text: string): number {
  const limit = /^\d{1,6}$/.test(text) ? Number(text) : 0;
  if (limit < 1) throw new CliError("USAGE", `--limit: "${text}" is not a number above 0`);
  return limit;
}
