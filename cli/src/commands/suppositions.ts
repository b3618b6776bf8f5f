import type { Supposition } from "@forage/proto/forage/operator/v1/operator";
import { CliError } from "../errors.ts";

/** The values of the flags of `whatif`. */
export interface SuppositionFlags {
  readonly lose: readonly string[];
  readonly drain: readonly string[];
  readonly scale: readonly string[];
  readonly add: string | undefined;
  readonly like: string | undefined;
}

type Change = Exclude<Supposition["supposition"], undefined>;

/** Parses the flags. `namespace` applies to services without one. Throws USAGE. */
export function readSuppositions(flags: SuppositionFlags, namespace: string): Supposition[] {
  const { lose, drain, scale, add, like } = flags;
  const changes: Change[] = [
    ...(add === undefined && like === undefined ? [] : [added(add, like)]),
    ...scale.map((text) => scaled(text, namespace)),
    ...drain.map((value): Change => ({ $case: "drainNode", value })),
    ...lose.map(lost),
  ];
  if (changes.length === 0)
    throw new CliError(
      "USAGE",
      "the change to try is missing: --lose, --drain, --add with --like, or --scale",
    );
  return changes.map((supposition) => ({ supposition }));
}

function lost(text: string): Change {
  if (text === "any-1") return { $case: "loseAnyNode", value: true };
  const equals = text.indexOf("=");
  if (equals < 0) return { $case: "loseNode", value: text };
  const [key, value] = [text.slice(0, equals), text.slice(equals + 1)];
  if (key === "" || value === "")
    throw new CliError("USAGE", `--lose: "${text}" is not a label; write KEY=VALUE, such as zone=a`);
  return { $case: "loseNodes", value: { key, value } };
}

function added(add: string | undefined, like: string | undefined): Change {
  if (add === undefined || like === undefined)
    throw new CliError("USAGE", "--add and --like go together: --add 3 --like NODE");
  return { $case: "addNodes", value: { count: wholeNumber("--add", add), like } };
}

function scaled(text: string, namespace: string): Change {
  const found = /^(?:([^/=]+)\/)?([^/=]+)=(\d+)$/.exec(text);
  if (found === null)
    throw new CliError(
      "USAGE",
      `--scale: "${text}" is not understood; write NAME=REPLICAS or NAMESPACE/NAME=REPLICAS`,
    );
  const [, given = namespace, name = "", replicas = ""] = found;
  return {
    $case: "scale",
    value: { namespace: given, name, replicas: wholeNumber("--scale", replicas) },
  };
}

const MAX = 1_000_000;

function wholeNumber(flag: string, text: string): number {
  const number = /^\d{1,7}$/.test(text) ? Number(text) : Number.NaN;
  if (!(number <= MAX)) throw new CliError("USAGE", `${flag}: "${text}" is not a number from 0 to ${MAX}`);
  return number;
}
