import { parseArgs } from "node:util";
import { messageOf } from "../../common/src/message-of.ts";
import { SetupError } from "../lib/setup-error.ts";
import { HOST_KINDS } from "./host-kinds.ts";
import { checkLabName } from "./lab-plan.ts";
import type { SlowLink } from "./lab-state.ts";

export type LabCommand =
  | {
      readonly type: "up";
      readonly count: number;
      readonly coordinatorOwnHost: boolean;
      readonly kind: string;
    }
  | { readonly type: "down" | "status" | "heal" }
  | { readonly type: "exec"; readonly host: string; readonly argv: readonly string[] }
  | { readonly type: "boot" | "reboot" | "poweroff"; readonly host: string }
  | { readonly type: "partition"; readonly hosts: readonly string[] }
  | { readonly type: "slow"; readonly host: string; readonly link: SlowLink }
  | { readonly type: "logs"; readonly host: string | undefined; readonly lines: number };

export interface LabFlags {
  readonly name: string;
  readonly command: LabCommand;
}

const DEFAULT_NAME = "lab";
const DEFAULT_LINES = 100;
const MAX_LINES = 100_000;
const MAX_DELAY_MS = 60_000;

/** Parses the command line of `hack/lab`. */
export function parseLabFlags(argv: readonly string[]): LabFlags {
  const { own, rest } = splitAtProgram(argv);
  const text = { type: "string" } as const;
  const { values, positionals } = parse(() =>
    parseArgs({
      args: [...own],
      options: { name: text, coordinator: text, kind: text, delay: text, loss: text, lines: text },
      allowPositionals: true,
    }),
  );
  const [verb = "", ...operands] = positionals;
  const flags = values as Flags;
  return { name: checkLabName(flags.name ?? DEFAULT_NAME), command: commandOf(verb, operands, flags, rest) };
}

type Flags = Readonly<Partial<Record<"name" | "coordinator" | "kind" | "delay" | "loss" | "lines", string>>>;

/** Splits the arguments before the program that runs on a host, whose options are its own: `exec HOST CMD --option`. */
function splitAtProgram(argv: readonly string[]): { own: readonly string[]; rest: readonly string[] } {
  const at = argv.indexOf("exec");
  if (at < 0) return { own: argv, rest: [] };
  const host = at + 2;
  const program = argv[host] === "--" ? host + 1 : host;
  return { own: argv.slice(0, host), rest: argv.slice(program) };
}

function commandOf(
  verb: string,
  operands: readonly string[],
  flags: Flags,
  rest: readonly string[],
): LabCommand {
  switch (verb) {
    case "up":
      return upCommand(operands, flags);
    case "down":
    case "status":
    case "heal":
      expect(operands, 0, verb);
      return { type: verb };
    case "exec":
      if (rest.length === 0)
        throw usage("exec needs a host and a command", "hack/lab exec h1 forage get nodes");
      return { type: "exec", host: expect(operands, 1, verb), argv: rest };
    case "boot":
    case "reboot":
    case "poweroff":
      return { type: verb, host: expect(operands, 1, verb) };
    case "partition":
      if (operands.length === 0) throw usage("partition needs a host", "hack/lab partition h2 h3");
      return { type: "partition", hosts: operands };
    case "slow":
      return { type: "slow", host: expect(operands, 1, verb), link: linkOf(flags) };
    case "logs":
      return {
        type: "logs",
        host: operands.length === 0 ? undefined : expect(operands, 1, verb),
        lines: number("--lines", flags.lines, DEFAULT_LINES, MAX_LINES),
      };
    default:
      throw usage(verb === "" ? "a command is missing" : `${verb} is no command`, "hack/lab --help");
  }
}

function upCommand(operands: readonly string[], { coordinator, kind = "nspawn" }: Flags): LabCommand {
  const count = Number(expect(operands, 1, "up"));
  if (coordinator !== undefined && coordinator !== "own-host")
    throw usage(`--coordinator ${coordinator} is not valid`, "own-host, or leave it out");
  if (!HOST_KINDS.includes(kind)) throw usage(`--kind ${kind} is not valid`, HOST_KINDS.join(" or "));
  return { type: "up", count, coordinatorOwnHost: coordinator !== undefined, kind };
}

function linkOf({ delay, loss }: Flags): SlowLink {
  if (delay === undefined && loss === undefined)
    throw usage("slow needs --delay or --loss", "hack/lab slow h2 --delay 100 --loss 5");
  return {
    delayMs: number("--delay", delay?.replace(/ms$/, ""), 0, MAX_DELAY_MS),
    lossPercent: number("--loss", loss?.replace(/%$/, ""), 0, 100),
  };
}

function number(flag: string, given: string | undefined, byDefault: number, most: number): number {
  if (given === undefined) return byDefault;
  const value = /^\d+(\.\d+)?$/.test(given) ? Number(given) : Number.NaN;
  if (!(value <= most)) throw usage(`${flag} ${given} is not valid`, `a number from 0 to ${most}`);
  return value;
}

function expect(operands: readonly string[], count: number, verb: string): string {
  if (operands.length !== count)
    throw usage(
      `${verb} takes ${count} operand${count === 1 ? "" : "s"}, not ${operands.length}`,
      "hack/lab --help",
    );
  return operands[0] ?? "";
}

function parse<T>(work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw new SetupError("BAD_USAGE", messageOf(error), "hack/lab --help", { cause: error });
  }
}

function usage(message: string, advice: string): SetupError {
  return new SetupError("BAD_USAGE", message, advice);
}
