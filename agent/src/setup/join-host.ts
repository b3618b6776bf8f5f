import type { MonotonicClock } from "@forage/common/clock";
import { pause } from "@forage/common/clock";
import { parseJoinToken } from "@forage/identity/join-token";
import { type Config, furtherDirectory } from "../config.ts";
import { textOf } from "../link/coordinator-address.ts";
import { SetupError } from "./setup-error.ts";
import type { SetupTask } from "./setup-flags.ts";

/** The agent's own report of its readiness. */
export interface Readiness {
  /** The reasons why the agent is not ready, none if it is. */
  readonly reasons: readonly string[];
  /** Whether the coordinator rejects this host, which waiting doesn't change. */
  readonly isRefused: boolean;
}

/** The functions of the host that a join uses. */
export interface JoiningHost {
  /** Reads a file, or a line of standard input (`-`). */
  readonly readText: (path: string) => Promise<string>;
  /** Creates directories as needed, and replaces the file atomically. */
  readonly writeText: (path: string, text: string, mode: number) => Promise<void>;
  readonly remove: (path: string) => Promise<void>;
  readonly exists: (path: string) => Promise<boolean>;
  /** Reads the agent's configuration, with flags that override its values. */
  readonly readConfig: (file: string, flags: readonly string[]) => Promise<Config>;
  /** Calls systemctl. Undefined if systemd does not run on this host. */
  readonly systemctl: ((...args: readonly string[]) => Promise<void>) | undefined;
  /** Returns the agent's readiness. Undefined if the agent does not respond. */
  readonly readiness: (config: Config) => Promise<Readiness | undefined>;
  readonly clock: MonotonicClock;
  readonly report: (line: string) => void;
}

type JoinTask = Extract<SetupTask, { readonly type: "join" }>;

const POLL_MS = 500;
const NO_ANSWER: Readiness = { reasons: ["the agent does not answer yet"], isRefused: false };
const TOKEN_IN_COMMAND_LINE =
  "warning: others on this host can read the token in the command line; give it on standard input, as `forage node add` prints it";
const DEFAULT_TOKEN_FILE = "/etc/forage/join-token";
const UNITS = ["forage-logs.socket", "forage-agent.service"] as const;

/** Stores the token and the addresses of the coordinators, starts the agent, and returns when it is ready. Throws SetupError. */
export async function joinHost(task: JoinTask, host: JoiningHost, signal: AbortSignal): Promise<void> {
  if (task.token !== undefined) host.report(TOKEN_IN_COMMAND_LINE);
  const token = await readToken(task, host);
  const config = await host.readConfig(task.config, flagsOf(task));
  const identity = `${config.dataDir}/identity`;
  // A failed join has left its key there.
  if (await host.exists(`${identity}/node.pem`))
    throw new SetupError(
      `this host has joined a fleet as ${config.nodeName}. To join again, remove its node (forage node remove ${config.nodeName}), stop forage-agent and move ${identity} away`,
    );
  const tokenFile = config.joinTokenFile ?? DEFAULT_TOKEN_FILE;
  await host.writeText(
    `${furtherDirectory(task.config)}/50-join.yaml`,
    joinSettings(task, config, tokenFile),
    0o644,
  );
  await host.writeText(tokenFile, `${token}\n`, 0o600);
  if (!task.start || host.systemctl === undefined) {
    host.report("the files are written; the agent joins when it is started");
    return;
  }
  await host.systemctl("enable", ...UNITS);
  await host.systemctl("restart", ...UNITS);
  await untilReady(task, config, host, signal);
  // A used token is not valid any more.
  await host.remove(tokenFile);
  host.report(`node ${config.nodeName} is Ready`);
}

async function readToken({ token, tokenFile }: JoinTask, host: JoiningHost): Promise<string> {
  const text = (token ?? (await host.readText(tokenFile ?? "-"))).trim();
  if (text === "")
    throw new SetupError(
      `${tokenFile ?? "standard input"} holds no token: \`forage node add\` prints the whole line`,
      { exitCode: 2 },
    );
  try {
    parseJoinToken(text);
  } catch (cause) {
    throw new SetupError("the token is not one of `forage node add`", { cause, exitCode: 2 });
  }
  return text;
}

function flagsOf({ coordinators: [coordinator, ...others], nodeName }: JoinTask): string[] {
  return [
    ...(coordinator === undefined ? [] : ["--coordinator", coordinator]),
    ...(others.length === 0 ? [] : ["--coordinators", others.join(",")]),
    ...(nodeName === undefined ? [] : ["--node-name", nodeName]),
  ];
}

/** Returns the checked values as settings. JSON is valid YAML. */
function joinSettings(
  { coordinators: given }: JoinTask,
  { coordinator, coordinators, nodeName }: Config,
  joinTokenFile: string,
): string {
  // Addresses that an operator has written into the configuration stay there.
  const others = given.length > 1 ? [["coordinators", coordinators.map(textOf)]] : [];
  return `# Written by forage-agent join.\n${[
    ["coordinator", textOf(coordinator)],
    ...others,
    ["nodeName", nodeName],
    ["joinTokenFile", joinTokenFile],
  ]
    .map(([name, value]) => `${name}: ${JSON.stringify(value)}\n`)
    .join("")}`;
}

async function untilReady(
  task: JoinTask,
  config: Config,
  host: JoiningHost,
  signal: AbortSignal,
): Promise<void> {
  const { clock, report } = host;
  const endMs = clock.monotonicMs() + task.timeoutMs;
  let shown = "";
  while (!signal.aborted) {
    const { reasons, isRefused } = (await host.readiness(config)) ?? NO_ANSWER;
    if (reasons.length === 0) return;
    const text = reasons.join("; ");
    if (isRefused) throw new SetupError(`the coordinator refuses node ${config.nodeName}: ${text}`);
    if (text !== shown) report(`waiting: ${text}`);
    shown = text;
    if (clock.monotonicMs() >= endMs)
      throw new SetupError(
        `node ${config.nodeName} is not Ready after ${task.timeoutMs / 1_000} s: ${text}. The agent keeps trying; see journalctl -u forage-agent`,
      );
    await pause(clock, POLL_MS, signal);
  }
  throw new SetupError("interrupted; the agent keeps trying to join");
}
