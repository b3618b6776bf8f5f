import { parseArgs } from "node:util";
import { messageOf } from "@forage/common/message-of";
import { SetupError } from "./setup-error.ts";

export type SetupTask =
  | {
      readonly type: "join";
      /** The token in the command line, where other users of the host can read it. */
      readonly token: string | undefined;
      /** The path of the token's file. If it and `token` are undefined, the token comes from standard input. */
      readonly tokenFile: string | undefined;
      /** HOST:PORT of each coordinator. Empty: the configured ones. */
      readonly coordinators: readonly string[];
      /** The node's name. Undefined: the configured one, or the host's name. */
      readonly nodeName: string | undefined;
      readonly config: string;
      readonly start: boolean;
      readonly timeoutMs: number;
    }
  | { readonly type: "support-bundle"; readonly config: string; readonly file: string | undefined }
  | { readonly type: "check"; readonly config: string; readonly output: "text" | "json" }
  | { readonly type: "help" };

const DEFAULT_CONFIG = "/etc/forage/agent.yaml";
const DEFAULT_TIMEOUT_SECONDS = 90;
const TIMEOUT_MAX_SECONDS = 3_600;

export const SETUP_USAGE = `usage: forage-agent join [options]          joins this host to a fleet, and returns when the node is Ready
       forage-agent check [options]         examines whether this host can run pods, and says what to do if not
       forage-agent support-bundle [--config FILE] [ARCHIVE]
                                            writes an archive with what an engineer needs to find a fault, without secrets

join reads its token from standard input. \`forage node add\` on the coordinator's host prints the whole line.
  --coordinator HOST:PORT  the coordinator's gRPC address; default: that of the configuration. Once for each of several coordinators
  --name NAME              the node's name; default: the host's name
  --token-file FILE        reads the token from a file instead
  --config FILE            default: ${DEFAULT_CONFIG}
  --no-start               writes the files only
  --timeout SECONDS        how long to wait until the node is Ready; default: ${DEFAULT_TIMEOUT_SECONDS}

  --output text|json       check: how the findings are printed; default: text

Exit codes: 0 the node is Ready or the host has no failure, 1 it is not or it has, 2 the command line is wrong.
`;

/** Parses the arguments after the program's name. Throws SetupError with exit code 2. */
export function parseSetupTask(argv: readonly string[]): SetupTask {
  const [task, ...args] = argv;
  if (task === "check") return parseCheck(args);
  if (task === "support-bundle") return parseSupportBundle(args);
  if (task === "--help" || task === "-h") return { type: "help" };
  if (task !== "join") throw wrong(`there is no task "${task ?? ""}"`);
  const text = { type: "string" } as const;
  const flag = { type: "boolean" } as const;
  const options = {
    coordinator: { ...text, multiple: true },
    ...{ name: text, "token-file": text, config: text, timeout: text },
    ...{ "no-start": flag, help: { ...flag, short: "h" } },
  };
  const { values, positionals } = parse(() => parseArgs({ args, options, allowPositionals: true }));
  if (values.help) return { type: "help" };
  const [token, ...rest] = positionals;
  if (rest.length > 0 || (token !== undefined && values["token-file"] !== undefined))
    throw wrong("join needs exactly one token, from standard input or --token-file");
  return {
    type: "join",
    ...{ token, tokenFile: values["token-file"], nodeName: values.name },
    coordinators: [...new Set(values.coordinator)],
    config: values.config ?? DEFAULT_CONFIG,
    start: values["no-start"] !== true,
    timeoutMs: seconds(values.timeout) * 1_000,
  };
}

function parseCheck(args: readonly string[]): SetupTask {
  const text = { type: "string" } as const;
  const options = { config: text, output: text, help: { type: "boolean", short: "h" } } as const;
  const { values } = parse(() => parseArgs({ args: [...args], options }));
  if (values.help) return { type: "help" };
  const { config = DEFAULT_CONFIG, output = "text" } = values;
  if (output !== "text" && output !== "json") throw wrong("--output: must be text or json");
  return { type: "check", config, output };
}

function parseSupportBundle(args: readonly string[]): SetupTask {
  const options = { config: { type: "string" }, help: { type: "boolean", short: "h" } } as const;
  const { values, positionals } = parse(() =>
    parseArgs({ args: [...args], options, allowPositionals: true }),
  );
  if (values.help) return { type: "help" };
  const [file, ...rest] = positionals;
  if (rest.length > 0) throw wrong("support-bundle accepts one archive");
  return { type: "support-bundle", config: values.config ?? DEFAULT_CONFIG, file };
}

function seconds(text: string | undefined): number {
  if (text === undefined) return DEFAULT_TIMEOUT_SECONDS;
  const value = /^\d{1,5}$/.test(text) ? Number(text) : Number.NaN;
  if (value >= 1 && value <= TIMEOUT_MAX_SECONDS) return value;
  throw wrong(`--timeout: must be a whole number from 1 to ${TIMEOUT_MAX_SECONDS}`);
}

function parse<T>(work: () => T): T {
  try {
    return work();
  } catch (cause) {
    throw wrong(messageOf(cause), cause);
  }
}

function wrong(message: string, cause?: unknown): SetupError {
  return new SetupError(`${message}\n${SETUP_USAGE}`, { exitCode: 2, cause });
}
