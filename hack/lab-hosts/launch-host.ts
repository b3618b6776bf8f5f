import { spawn } from "node:child_process";
import { closeSync, existsSync, openSync, readFileSync, writeFileSync } from "node:fs";
import { identify, isAlive, type ProcessIdentity } from "../lib/process-identity.ts";
import { SetupError } from "../lib/setup-error.ts";

export interface LaunchOptions {
  /** The network namespace that the process starts in. */
  readonly network: string;
  /** The cgroups that it starts in. */
  readonly groups: readonly string[];
  readonly argv: readonly string[];
  /** The file to which its output is appended. */
  readonly console: string;
}

/** A shell script that joins all cgroups, enters the network namespace, and executes the program. */
const LAUNCH = `network=$1; shift
while [ "$1" != -- ]; do echo $$ > "$1/cgroup.procs"; shift; done; shift
exec nsenter --net="/run/netns/$network" -- "$@"`;

/** Starts the process of a host, which outlives this process. */
export function launchHost({ network, groups, argv, console }: LaunchOptions): ProcessIdentity {
  const log = openSync(console, "a");
  const child = spawn("sh", ["-c", LAUNCH, "sh", network, ...groups, "--", ...argv], {
    detached: true,
    stdio: ["ignore", log, log],
  });
  closeSync(log);
  child.on("error", () => {});
  child.unref();
  const identity = child.pid === undefined ? undefined : identify(child.pid);
  if (identity === undefined)
    throw new SetupError("COMMAND_FAILED", `${argv[0]} can't be started`, "see the console's log");
  return identity;
}

/** Stores the process for later commands. */
export function rememberHost(file: string, identity: ProcessIdentity): void {
  writeFileSync(file, JSON.stringify(identity));
}

/** Returns the stored process, if it is alive. */
export function recallHost(file: string): ProcessIdentity | undefined {
  if (!existsSync(file)) return undefined;
  const identity = JSON.parse(readFileSync(file, "utf8")) as ProcessIdentity;
  return isAlive(identity) ? identity : undefined;
}
