import { type ParseArgsConfig, parseArgs } from "node:util";
import { CliError } from "../errors.ts";
import { type Command, isNamed } from "./definition.ts";
import type { Flag, Flags } from "./flag.ts";
import { GLOBAL_FLAGS } from "./global-flags.ts";
import { didYouMean } from "./suggest.ts";

export interface ParsedLine {
  readonly command: Command;
  /** The commands from the program down to `command`. */
  readonly path: readonly Command[];
  readonly flags: Readonly<Record<string, boolean | string | readonly string[] | undefined>>;
  readonly operands: readonly string[];
  readonly afterDashes: readonly string[] | undefined;
}

/** Finds the command, and parses its flags and operands. Unknown words are errors. */
export function parseLine(root: Command, argv: readonly string[]): ParsedLine {
  const { path, rest } = findCommand(root, argv);
  const command = path.at(-1) ?? root;
  const known: Flags = { ...GLOBAL_FLAGS, ...command.flags };
  const { tokens } = parseArgs({
    args: [...rest],
    options: parserOptions(known),
    strict: false,
    allowPositionals: true,
    tokens: true,
  });
  const flags = noFlags(known);
  const operands: string[] = [];
  let afterDashes: string[] | undefined;
  for (const token of tokens) {
    if (token.kind === "option-terminator") afterDashes = [];
    else if (token.kind === "positional") (afterDashes ?? operands).push(token.value);
    else setFlag(flags, known, token, path);
  }
  const parsed = { command, path, flags, operands, afterDashes };
  if (flags.help !== true) checkOperands(parsed);
  return parsed;
}

interface OptionToken {
  readonly name: string;
  readonly rawName: string;
  readonly value: string | undefined;
  readonly inlineValue: boolean | undefined;
}

/**
 * Descends the command tree by the words that are not flags, so that global flags may be anywhere.
 */
function findCommand(root: Command, argv: readonly string[]): { path: Command[]; rest: string[] } {
  const path = [root];
  const rest: string[] = [];
  for (let i = 0; i < argv.length; i++) {
    const word = argv[i] ?? "";
    const subcommands = path.at(-1)?.subcommands ?? [];
    if (subcommands.length === 0 || word === "--") return { path, rest: [...rest, ...argv.slice(i)] };
    if (word.startsWith("-")) {
      rest.push(word);
      if (takesNextWord(word)) rest.push(...argv.slice(++i, i + 1));
      continue;
    }
    const next = subcommands.find((command) => isNamed(command, word));
    if (next === undefined) {
      const names = subcommands.map(({ name }) => name);
      throw usage(path, `there is no command "${commandLine(path)} ${word}"${didYouMean(word, names)}`);
    }
    path.push(next);
  }
  return { path, rest };
}

/** Returns the first word that is neither a global flag nor the value of one. */
export function firstWord(argv: readonly string[]): string | undefined {
  for (let i = 0; i < argv.length; i++) {
    const word = argv[i] ?? "";
    if (!word.startsWith("-") || word === "--") return word;
    if (takesNextWord(word)) i++;
  }
  return undefined;
}

function takesNextWord(word: string): boolean {
  for (const [name, flag] of Object.entries<Flag>(GLOBAL_FLAGS)) {
    if (word === `--${name}` || (flag.short !== undefined && word === `-${flag.short}`))
      return flag.type !== "switch";
  }
  return false;
}

function parserOptions(known: Flags): NonNullable<ParseArgsConfig["options"]> {
  return Object.fromEntries(
    Object.entries(known).map(([name, { type, short }]) => [
      name,
      {
        type: type === "switch" ? "boolean" : "string",
        multiple: true,
        ...(short !== undefined && { short }),
      },
    ]),
  );
}

function noFlags(known: Flags): Record<string, boolean | string | readonly string[] | undefined> {
  return Object.fromEntries(
    Object.entries(known).map(([name, { type }]) => [
      name,
      type === "switch" ? false : type === "list" ? [] : undefined,
    ]),
  );
}

function setFlag(
  flags: Record<string, unknown>,
  known: Flags,
  token: OptionToken,
  path: readonly Command[],
): void {
  const { name, rawName, inlineValue } = token;
  // Accepts -o=json as well.
  const value = inlineValue && !rawName.startsWith("--") ? token.value?.replace(/^=/, "") : token.value;
  const flag = Object.hasOwn(known, name) ? known[name] : undefined;
  if (flag === undefined) {
    const hint = rawName.startsWith("--")
      ? didYouMean(
          rawName,
          Object.keys(known).map((each) => `--${each}`),
        )
      : "";
    throw usage(path, `unknown option ${rawName}${hint}`);
  }
  if (flag.type === "switch") {
    if (value !== undefined) throw usage(path, `${rawName} accepts no value`);
    flags[name] = true;
    return;
  }
  if (value === undefined) throw usage(path, `${rawName} needs a value: ${rawName} ${flag.hint ?? "VALUE"}`);
  // A missing value must not consume the next option. A value that begins with a dash can be given
  // as --flag=-x.
  if (inlineValue !== true && value.startsWith("-") && value !== "-") {
    throw usage(path, `${rawName} needs a value; to give it "${value}" write --${name}=${value}`);
  }
  if (flag.choices !== undefined && !flag.choices.includes(value)) {
    throw usage(
      path,
      `${rawName} is one of ${flag.choices.join(", ")}, not "${value}"${didYouMean(value, flag.choices)}`,
    );
  }
  if (flag.type === "list") flags[name] = [...((flags[name] as readonly string[] | undefined) ?? []), value];
  else if (flags[name] !== undefined && flags[name] !== value) throw usage(path, `${rawName} is given twice`);
  else flags[name] = value;
}

function checkOperands({ command, path, operands, afterDashes }: ParsedLine): void {
  if (command.subcommands.length > 0) return;
  const before = command.operands.filter((operand) => operand.afterDashes !== true);
  const after = command.operands.find((operand) => operand.afterDashes === true);
  const missing = before.find((operand, index) => operand.required === true && operands.length <= index);
  if (missing !== undefined) throw usage(path, `${missing.name} is missing: ${missing.help}`);
  if (!before.some(({ repeated }) => repeated === true) && operands.length > before.length) {
    const hint = after === undefined ? "" : `; the command comes after --`;
    throw usage(path, `unexpected "${operands[before.length]}"${hint}`);
  }
  for (const [index, { choices, name }] of before.entries()) {
    const value = operands[index];
    if (choices === undefined || value === undefined || choices.includes(value)) continue;
    throw usage(path, `${name} is one of ${choices.join(", ")}, not "${value}"${didYouMean(value, choices)}`);
  }
  if (after === undefined && afterDashes !== undefined && afterDashes.length > 0) {
    throw usage(path, `unexpected "${afterDashes[0]}"`);
  }
  if (after?.required === true && (afterDashes === undefined || afterDashes.length === 0)) {
    throw usage(path, `${after.name} is missing: put it after --`);
  }
}

function usage(path: readonly Command[], problem: string): CliError {
  return new CliError("USAGE", `${problem}; see ${commandLine(path)} --help`);
}

function commandLine(path: readonly Command[]): string {
  return path.map(({ name }) => name).join(" ");
}
