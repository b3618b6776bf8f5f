import { RebalanceMove } from "@forage/proto/forage/operator/v1/operator";
import { operator } from "../client/coordinator.ts";
import { defineCommand } from "../command/definition.ts";
import { type Context, contextOf, printListing, withCoordinator } from "../context.ts";
import { CliError } from "../errors.ts";
import { EXIT } from "../exit-code.ts";
import type { Column } from "../output/table.ts";

export const rebalance = defineCommand({
  name: "rebalance",
  summary: "Move pods to better places, a few at a time",
  details: `Each move starts the replacement first and stops the old pod once it is ready, as a drain does. The scheduler chooses the node again
when a move begins. Pods that fit no other node, Recreate workloads, and workloads whose replicas are not all ready stay as they are.
If this command ends early, no further move begins.`,
  flags: {
    "dry-run": { type: "switch", help: "only show the moves and their benefit" },
    goal: {
      type: "text",
      hint: "GOAL",
      choices: ["spread", "pack"],
      help: "spread replicas evenly (the default), or empty nodes",
    },
    "max-moves": { type: "text", hint: "COUNT", help: "in all; 10 by default, at most 100" },
    "at-once": { type: "text", hint: "COUNT", help: "at the same time; 1 by default, at most 20" },
  },
  run: async (invocation) => {
    const { flags } = invocation;
    const context = contextOf(invocation);
    const request = {
      goal: flags.goal ?? "",
      maxMoves: count("--max-moves", flags["max-moves"]),
      maxInFlight: count("--at-once", flags["at-once"]),
      dryRun: flags["dry-run"],
    };
    return withCoordinator(context, async (coordinator) => {
      const done = new Map<string, RebalanceMove>();
      for await (const { summary, moves, changed } of coordinator.stream(operator.rebalance, request)) {
        for (const move of changed === undefined ? moves : [changed]) done.set(nameOf(move), move);
        if (changed === undefined) printPlan(context, summary, moves.length);
        else printMove(context, changed);
      }
      const rows = [...done.values()];
      if (request.dryRun || context.format === "json" || context.format === "yaml") print(context, rows);
      return rows.some(({ state }) => state === "failed") ? EXIT.failed : EXIT.ok;
    });
  },
});

const columns: readonly Column<RebalanceMove>[] = [
  { title: "POD", value: nameOf },
  { title: "FROM", value: ({ from }) => from },
  { title: "TO", value: ({ to }) => to },
  { title: "STATE", value: ({ state }) => state },
  { title: "MESSAGE", value: ({ message }) => message, whenFilled: true },
];

function print(context: Context, rows: readonly RebalanceMove[]): void {
  const none = "nothing to move";
  printListing(context, {
    columns,
    rows,
    json: RebalanceMove.toJSON,
    name: (move) => `pod/${move.pod}`,
    none,
  });
}

function printPlan({ world }: Context, summary: string, moves: number): void {
  if (moves > 0) world.stderr.write(`${summary}\n`);
}

function printMove({ world, format }: Context, move: RebalanceMove): void {
  if (format === "json" || format === "yaml") return;
  const message = move.message === "" ? "" : `: ${move.message}`;
  world.stdout.write(`${nameOf(move)} ${move.state} from ${move.from}${message}\n`);
}

function nameOf({ namespace, pod }: RebalanceMove): string {
  return `${namespace}/${pod}`;
}

function count(flag: string, text: string | undefined): number {
  if (text === undefined) return 0;
  if (!/^[1-9]\d{0,2}$/.test(text)) throw new CliError("USAGE", `${flag}: "${text}" is not a count`);
  return Number(text);
}
