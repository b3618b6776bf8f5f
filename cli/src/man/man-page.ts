import type { Command, Operand } from "../command/definition.ts";
import type { Flag, Flags } from "../command/flag.ts";
import { GLOBAL_FLAGS } from "../command/global-flags.ts";
import { aliasText, flagText, synopsis } from "../command/usage.ts";

/** A manual page of section 1. */
export interface ManPage {
  /** The name of the page, such as `forage-node-ls`. */
  readonly name: string;
  /** The source of the page in man's format. */
  readonly text: string;
}

/** Returns one page for the program, and one for each command and group. */
export function manPages(program: Command): ManPage[] {
  const pages: ManPage[] = [];
  const visit = (path: readonly Command[], command: Command): void => {
    const whole = [...path, command];
    pages.push({ name: nameOf(whole), text: renderPage(whole, command) });
    for (const subcommand of command.subcommands) visit(whole, subcommand);
  };
  visit([], program);
  return pages;
}

function renderPage(path: readonly Command[], command: Command): string {
  const { summary, details, operands, flags, subcommands, aliases } = command;
  const name = nameOf(path);
  const paragraphs = (details ?? `${summary}.`).split(/\n{2,}/);
  const lines = [
    `.TH "${name.toUpperCase()}" "1" "" "Forage" "Forage Manual"`,
    ...section("NAME", [`${escaped(name)} \\- ${escaped(lowerFirst(summary))}`]),
    ...section("SYNOPSIS", [`.B ${escaped(synopsis(path))}`]),
    ...section(
      "DESCRIPTION",
      paragraphs.flatMap((text, index) => [...(index > 0 ? [".PP"] : []), ...textLines(text)]),
    ),
    ...section("ARGUMENTS", operands.flatMap(operandLines)),
    ...section(
      "COMMANDS",
      subcommands.flatMap((it) => [...item(`${name}-${it.name}(1)`), `${escaped(it.summary)}.`]),
    ),
    ...section("OPTIONS", flagLines(flags)),
    ...section("OPTIONS OF EVERY COMMAND", path.length === 1 ? flagLines(GLOBAL_FLAGS) : []),
    ...section("NOTES", aliases === undefined ? [] : textLines(aliasText(path))),
    ...section("SEE ALSO", path.length === 1 ? [] : [`\\fB${escaped(nameOf(path.slice(0, -1)))}\\fR(1)`]),
  ];
  return `${lines.join("\n")}\n`;
}

function section(title: string, lines: readonly string[]): string[] {
  return lines.length === 0 ? [] : [`.SH "${title}"`, ...lines];
}

function operandLines({ name, help, choices }: Operand): string[] {
  return [...item(name), `${escaped(choices === undefined ? help : `${help}: ${choices.join(", ")}`)}.`];
}

function flagLines(flags: Flags): string[] {
  return Object.entries<Flag>(flags).flatMap(([name, flag]) => [
    ...item(flagText(name, flag).trim()),
    `${escaped(flag.help)}${flag.type === "list" ? " (repeatable)" : ""}.`,
  ]);
}

function item(term: string): string[] {
  return [".TP", `.B ${escaped(term)}`];
}

/**
 * Splits a text into lines. Line breaks in details are kept, because some contain commands to copy.
 */
function textLines(text: string): string[] {
  return text.split("\n").flatMap((line, index) => [...(index > 0 ? [".br"] : []), escaped(line)]);
}

/**
 * Escapes a text for man: a backslash would start an escape, a dash would become a hyphen, and a
 * dot or apostrophe at the start of a line would be a command.
 */
function escaped(text: string): string {
  const plain = text.replaceAll("\\", "\\e").replaceAll("-", "\\-").replaceAll("…", "...");
  return /^[.']/.test(plain) ? `\\&${plain}` : plain;
}

function lowerFirst(text: string): string {
  return text.charAt(0).toLowerCase() + text.slice(1);
}

function nameOf(path: readonly Command[]): string {
  return path.map(({ name }) => name).join("-");
}
