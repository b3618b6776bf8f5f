import type { ExitCode } from "../exit-code.ts";
import type { World } from "../world.ts";
import type { Flag, Flags, FlagValues } from "./flag.ts";
import type { GlobalFlags } from "./global-flags.ts";

export interface Operand {
  /** The name of the operand in the help, such as `NAME`. */
  readonly name: string;
  readonly required?: boolean;
  /** Whether the operand accepts all further words. Only for the last operand. */
  readonly repeated?: boolean;
  /** Whether the operand follows `--`, after which words are not interpreted. */
  readonly afterDashes?: boolean;
  readonly choices?: readonly string[];
  /** Suggestions for shell completion. Other values are allowed as well. */
  readonly offers?: readonly string[];
  readonly help: string;
}

export interface Invocation<F extends Flags = Flags> {
  readonly flags: FlagValues<F> & FlagValues<GlobalFlags>;
  /** The operands before `--`. */
  readonly operands: readonly string[];
  /** The operands after `--`; undefined without `--`. */
  readonly afterDashes: readonly string[] | undefined;
  readonly world: World;
}

export interface Command {
  readonly name: string;
  /** Former names that still work. */
  readonly aliases?: readonly string[];
  /** The summary: one line without a full stop. */
  readonly summary: string;
  /** Paragraphs that are shown in the command's own help. */
  readonly details?: string;
  readonly operands: readonly Operand[];
  readonly flags: Flags;
  readonly subcommands: readonly Command[];
  readonly run: ((invocation: Invocation) => Promise<ExitCode>) | undefined;
}

export interface CommandOptions<F extends Flags> {
  readonly name: string;
  readonly aliases?: readonly string[];
  readonly summary: string;
  readonly details?: string;
  readonly operands?: readonly Operand[];
  readonly flags?: F;
  readonly run: (invocation: Invocation<F>) => Promise<ExitCode>;
}

/** Defines a command, and keeps the types of its flags for its `run`. */
export function defineCommand<const F extends Flags = Record<never, Flag>>(
  options: CommandOptions<F>,
): Command {
  return {
    ...options,
    operands: options.operands ?? [],
    flags: options.flags ?? {},
    subcommands: [],
    // The parser sets exactly the flags declared here.
    run: options.run as (invocation: Invocation) => Promise<ExitCode>,
  };
}

/**
 * Reports whether a word of a command line names the command. Every `ls` command also has the name
 * `list`.
 */
export function isNamed({ name, aliases }: Command, word: string): boolean {
  return name === word || aliases?.includes(word) === true || (name === "ls" && word === "list");
}

export function groupCommands(name: string, summary: string, subcommands: readonly Command[]): Command {
  return { name, summary, operands: [], flags: {}, subcommands, run: undefined };
}
