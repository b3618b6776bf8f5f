import type { Command } from "../command/definition.ts";
import type { Flag } from "../command/flag.ts";
import { GLOBAL_FLAGS } from "../command/global-flags.ts";

/** The suggestions of a shell for one command of the tree. */
export interface CommandCompletion {
  /** The words of the command, starting with the program: `forage node ls`. */
  readonly path: string;
  readonly words: readonly Offer[];
  readonly flags: readonly FlagOffer[];
}

export interface Offer {
  readonly word: string;
  readonly help: string;
}

export interface FlagOffer {
  readonly name: string;
  readonly short: string | undefined;
  readonly help: string;
  readonly value: "none" | "file" | "text" | readonly string[];
}

/** Returns the entries of all commands, starting with the program. */
export function describeCommands(program: Command): CommandCompletion[] {
  const places: CommandCompletion[] = [];
  const visit = (command: Command, path: string): void => {
    const flags = Object.entries<Flag>({ ...command.flags, ...GLOBAL_FLAGS });
    places.push({ path, words: wordsOf(command), flags: flags.map(([name, flag]) => offerFlag(name, flag)) });
    for (const subcommand of command.subcommands) visit(subcommand, `${path} ${subcommand.name}`);
  };
  visit(program, program.name);
  return places;
}

function wordsOf({ subcommands, operands }: Command): Offer[] {
  if (subcommands.length > 0) return subcommands.map(({ name, summary }) => ({ word: name, help: summary }));
  return (operands[0]?.choices ?? operands[0]?.offers ?? []).map((word) => ({ word, help: "" }));
}

function offerFlag(name: string, { type, short, choices, hint, help }: Flag): FlagOffer {
  const value = type === "switch" ? "none" : (choices ?? (hint?.includes("FILE") === true ? "file" : "text"));
  return { name, short, help, value };
}
