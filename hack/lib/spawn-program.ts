import { spawn } from "node:child_process";
import { closeSync, openSync, readFileSync } from "node:fs";
import { endProcess, identify, type ProcessIdentity } from "./process-identity.ts";
import { SetupError } from "./setup-error.ts";

export interface SpawnOptions {
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
}

export interface Program {
  readonly identity: ProcessIdentity;
  readonly logPath: string;
  /** Returns standard output and standard error so far. */
  readLog(): string;
  kill(signal: NodeJS.Signals): void;
  /** Sends SIGTERM, and SIGKILL after `graceMs`. */
  end(graceMs: number): Promise<void>;
  /** Settles when the program ends, with its exit code or the signal's name. */
  readonly exited: Promise<number | NodeJS.Signals>;
}

/** Starts a program whose output is appended to a file. The caller must end it. */
export function spawnProgram(
  file: string,
  args: readonly string[],
  options: SpawnOptions & { readonly logPath: string },
): Program {
  const log = openSync(options.logPath, "a");
  const child = spawn(file, args, {
    cwd: options.cwd,
    env: { ...process.env, ...options.env },
    stdio: ["ignore", log, log],
  });
  closeSync(log);
  const exited = new Promise<number | NodeJS.Signals>((resolve) => {
    child.on("exit", (code, signal) => resolve(code ?? signal ?? 1));
    child.on("error", () => resolve(127));
  });
  const identity = child.pid === undefined ? undefined : identify(child.pid);
  if (!identity)
    throw new SetupError("MISSING_TOOL", `${file} can't be started`, "is it installed and executable?");
  return {
    identity,
    logPath: options.logPath,
    exited,
    readLog: () => readFileSync(options.logPath, "utf8"),
    kill: (signal) => void child.kill(signal),
    end: (graceMs) => endProcess(identity, { graceMs }),
  };
}
