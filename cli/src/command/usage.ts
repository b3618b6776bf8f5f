import type { Command, Operand } from "./definition.ts";
import type { Flag, Flags } from "./flag.ts";
import { GLOBAL_FLAGS } from "./global-flags.ts";

/** Renders the help of the last command of the path. */
export function renderUsage(path: readonly Command[]): string {
  const command = path.at(-1);
  if (command === undefined) return "";
  const lines = [`${command.summary}.`, "", `Usage: ${synopsis(path)}`];
  if (command.details !== undefined) lines.push("", command.details);
  if (command.aliases !== undefined) lines.push("", aliasText(path));
  if (command.subcommands.length > 0) {
    lines.push("", "Commands:", ...columns(command.subcommands.map(({ name, summary }) => [name, summary])));
  }
  if (command.operands.length > 0) lines.push("", "Arguments:", ...columns(command.operands.map(operandRow)));
  if (Object.keys(command.flags).length > 0) lines.push("", "Options:", ...columns(flagRows(command.flags)));
  lines.push("", "Options of every command:", ...columns(flagRows(GLOBAL_FLAGS)));
  return `${lines.join("\n")}\n`;
}

/** Returns the synopsis of a command, such as `forage logs [options] POD|KIND/NAME`. */
export function synopsis(path: readonly Command[]): string {
  const command = path.at(-1);
  const words = path.map(({ name }) => name);
  if (command === undefined) return "";
  if (command.subcommands.length > 0) return [...words, "COMMAND"].join(" ");
  return [...words, "[options]", ...command.operands.map(operandText)].join(" ");
}

/** Returns a line such as `Former name: forage node forget.`, or an empty text if there is none. */
export function aliasText(path: readonly Command[]): string {
  const aliases = path.at(-1)?.aliases ?? [];
  const group = path.slice(0, -1).map(({ name }) => name);
  return aliases
    .map((alias) => `Former name: ${[...group, alias].join(" ")}.`)
    .join(
      "\
",
    );
}

/** Returns the names of a flag, such as `-n, --namespace NAME`. */
export function flagText(name: string, flag: Flag): string {
  const value = flag.type === "switch" ? "" : ` ${flag.choices?.join("|") ?? flag.hint ?? "VALUE"}`;
  return `${flag.short === undefined ? "    " : `-${flag.short}, `}--${name}${value}`;
}

function operandText({ name, required, repeated, afterDashes }: Operand): string {
  const text = repeated === true ? `${name}…` : name;
  const shown = required === true ? text : `[${text}]`;
  return afterDashes === true ? `-- ${shown}` : shown;
}

function operandRow({ name, choices, help }: Operand): [string, string] {
  return [name, choices === undefined ? help : `${help}: ${choices.join(", ")}`];
}

function flagRows(flags: Flags): [string, string][] {
  return Object.entries(flags).map(([name, flag]) => [
    flagText(name, flag),
    flag.type === "list" ? `${flag.help} (repeatable)` : flag.help,
  ]);
}

function columns(rows: readonly (readonly [string, string])[]): string[] {
  const width = Math.max(...rows.map(([left]) => left.length));
  return rows.map(([left, right]) => `  ${left.padEnd(width)}  ${right}`);
}
