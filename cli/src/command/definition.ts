import type { ExitCode } from "../exit-code.ts";
import type { World } from "../world.ts";
import type { Flag, Flags, FlagValues } from "./flag.ts";
import type { GlobalFlags } from "./global-flags.ts";

export interface Operand {
  /** The name in the help, such as `NAME`. */
  readonly name: string;
  readonly required?: boolean;
  /** Takes all that follow. Only for the last one. */
  readonly repeated?: boolean;
  /** Stands after `--` and is handed on as it is. */
  readonly afterDashes?: boolean;
  readonly choices?: readonly string[];
  /** Suggestions for shells, where other values are allowed too. */
  readonly offers?: readonly string[];
  readonly help: string;
}

export interface Invocation<F extends Flags = Flags> {
  readonly flags: FlagValues<F> & FlagValues<GlobalFlags>;
  /** The operands before `--`. */
  readonly operands: readonly string[];
  /** The operands after `--`; undefined without it. */
  readonly afterDashes: readonly string[] | undefined;
  readonly world: World;
}

export interface Command {
  readonly name: string;
  /** Former names, which still work. */
  readonly aliases?: readonly string[];
  /** One line, no full stop. */
  readonly summary: string;
  /** Paragraphs for its own help. */
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

/** Keeps the flags' types between what a command declares and what its `run` gets. */
export function defineCommand<const F extends Flags = Record<never, Flag>>(
  options: CommandOptions<F>,
): Command {
  return {
    ...options,
    operands: options.operands ?? [],
    flags: options.flags ?? {},
    subcommands: [],
    // The parser fills in exactly the flags that are declared here.
    run: options.run as (invocation: Invocation) => Promise<ExitCode>,
  };
}

/** Reports whether a word of a command line names the command. Each `ls` answers to `list`, too. */
export function isNamed({ name, aliases }: Command, word: string): boolean {
  return name === word || aliases?.includes(word) === true || (name === "ls" && word === "list");
}

export function groupCommands(name: string, summary: string, subcommands: readonly Command[]): Command {
  return { name, summary, operands: [], flags: {}, subcommands, run: undefined };
}
