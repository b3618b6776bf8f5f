import type { Command } from "../src/command/definition.ts";
import type { Flag, Flags } from "../src/command/flag.ts";
import { GLOBAL_FLAGS } from "../src/command/global-flags.ts";
import { aliasText, flagText, synopsis } from "../src/command/usage.ts";

export const BEGIN = "<!-- Written from the command's definitions: npm run docs -w cli -->";
export const END = "<!-- End of what is written from the definitions -->";

/** Returns the generated part of docs/reference/cli.md. */
export function renderReference(program: Command): string {
  const parts = ["### Options of every command", "", ...flagList(GLOBAL_FLAGS), ""];
  const visit = (path: readonly Command[]): void => {
    const command = path.at(-1) as Command;
    if (command.subcommands.length === 0) parts.push(...renderCommand(path, command));
    for (const subcommand of command.subcommands) visit([...path, subcommand]);
  };
  visit([program]);
  return `${BEGIN}\n\n${parts.join("\n").trimEnd()}\n\n${END}`;
}

function renderCommand(path: readonly Command[], command: Command): string[] {
  const { summary, details, operands, flags, aliases } = command;
  const title = path.map(({ name }) => name).join(" ");
  return [
    `### ${title}`,
    "",
    `${summary}.`,
    "",
    "```",
    synopsis(path),
    "```",
    "",
    ...(details === undefined ? [] : [details, ""]),
    ...(aliases === undefined ? [] : [aliasText(path), ""]),
    ...operands.map(
      ({ name, help, choices }) =>
        `- \`${name}\`: ${help}${choices === undefined ? "" : ` (${choices.join(", ")})`}`,
    ),
    ...flagList(flags),
    "",
  ];
}

function flagList(flags: Flags): string[] {
  return Object.entries<Flag>(flags).map(
    ([name, flag]) =>
      `- \`${flagText(name, flag).trim()}\`: ${flag.help}${flag.type === "list" ? " (repeatable)" : ""}`,
  );
}
