import { spawn } from "node:child_process";
import type { Readable, Writable } from "node:stream";
import { linkSignals } from "@forage/common/link-signals";
import { WorkspaceError } from "./workspace-error.ts";

/** The owner of the files of workspaces. Containers of workspaces run as this user. */
export const WORKSPACE_UID = 33_333;
export const WORKSPACE_GID = 33_333;

/** Capabilities by the names of capabilities(7), without their prefix. */
export type Capability =
  | "chown"
  | "dac_override"
  | "dac_read_search"
  | "fowner"
  | "fsetid"
  | "mknod"
  | "setfcap";

export interface ConfinedCommand {
  readonly file: string;
  readonly args: readonly string[];
  /** The only privileges of the program. Default: none. */
  readonly capabilities?: readonly Capability[];
  /** The program's working directory, which it sees as `CONFINED_DIRECTORY`. */
  readonly directory: string;
  /** The content of `SECRET_FILE`, which only this program and its children can see. */
  readonly secret?: string;
  /**
   * Variables in addition to a fixed environment. Processes of the same user can read them, so they must not contain
   * credentials.
   */
  readonly env?: Readonly<Record<string, string>>;
  /** Whether the program gets a network namespace without any interface. Default: false. */
  readonly offline?: boolean;
  /** Whether the program yields the processor to others. Default: false. */
  readonly background?: boolean;
}

export interface ConfinedProcess {
  /** Kills the program and its children. */
  readonly kill: () => void;
  readonly stdin: Writable;
  readonly stdout: Readable;
  /** Resolves with the exit code, or undefined if a signal ended the program. Rejects if it can't be started. */
  readonly ended: Promise<number | undefined>;
  /** Returns the last lines of the error output. */
  readonly words: () => string;
}

/**
 * The path at which a confined program sees its directory. The real path leads through directories that are closed to
 * its user.
 */
export const CONFINED_DIRECTORY = "/mnt";
/** The file with a confined program's secret, in an in-memory file system that only this program can see. */
export const SECRET_FILE = "/tmp/secret";

/** A script that runs as root in a new mount namespace. Its arguments are the directory and the program. */
const ENTER_DIRECTORY = [
  "set -e",
  `mount --bind -- "$1" ${CONFINED_DIRECTORY}`,
  "mount -t tmpfs -o mode=1777,size=64m,nosuid,nodev forage-workspace /tmp",
  `cd ${CONFINED_DIRECTORY}`,
  "shift",
].join("\n");
const EXECUTE = 'exec "$@"';
/** The secret comes through a pipe, so it appears in no argument, environment or file of the host. */
const EXECUTE_WITH_SECRET = [
  `(umask 077; cat > ${SECRET_FILE})`,
  `chown ${WORKSPACE_UID}:${WORKSPACE_GID} ${SECRET_FILE}`,
  'exec "$@" < /dev/null',
].join("\n");

/** Administrators' tools are in sbin, which the PATH of a service may lack. */
const ENV = { PATH: "/usr/sbin:/usr/bin:/sbin:/bin", LC_ALL: "C", HOME: "/nonexistent" };
const OUTPUT_BYTES_MAX = 256 * 1024;
// Long enough for the reason, and short enough for a status message.
const WORDS_LENGTH_MAX = 500;

/**
 * Starts a program as the workspaces' unprivileged user. It can't regain privileges, and it ends with the agent. The
 * caller reads `stdout`, and kills the program when it no longer needs it.
 */
export function startConfined(command: ConfinedCommand): ConfinedProcess {
  const [file = "", ...args] = commandLine(command);
  const child = spawn(file, args, {
    cwd: "/",
    env: { ...ENV, ...command.env },
    stdio: ["pipe", "pipe", "pipe"],
    // The program gets its own process group, so that a kill reaches its children.
    detached: true,
  });
  // A program that ends early is reported by its exit code, not by the broken pipe.
  child.stdin.on("error", () => undefined);
  let kept = Buffer.alloc(0);
  child.stderr.on("data", (chunk: Buffer) => {
    kept = Buffer.concat([kept, chunk]).subarray(-OUTPUT_BYTES_MAX);
  });
  const ended = new Promise<number | undefined>((resolve, reject) => {
    child.once("error", (cause) =>
      reject(new WorkspaceError("HOST_FAILED", `${command.file}: ${cause.message}`, { cause })),
    );
    child.once("close", (code) => resolve(code ?? undefined));
  });
  ended.catch(() => undefined);
  if (command.secret !== undefined) child.stdin.end(command.secret);
  return {
    ...{ ended, stdin: child.stdin, stdout: child.stdout },
    kill: () => {
      if (child.pid !== undefined && child.exitCode === null && child.signalCode === null)
        killGroup(child.pid);
    },
    words: () =>
      kept
        .toString()
        .trim()
        .replaceAll(/\s*\n\s*/g, "; ")
        .slice(-WORDS_LENGTH_MAX),
  };
}

export interface ConfinedResult {
  /** Undefined if a signal killed the program. */
  readonly exitCode: number | undefined;
  readonly stdout: string;
  readonly stderr: string;
}

/**
 * Runs a program to its end. Output beyond the limit, by default 256 KiB, is dropped. Rejects with ABORTED, or with
 * UNAVAILABLE after the time limit.
 */
export async function runConfined(
  command: ConfinedCommand,
  options: { readonly timeoutMs: number; readonly signal: AbortSignal; readonly outputBytesMax?: number },
): Promise<ConfinedResult> {
  options.signal.throwIfAborted();
  const { outputBytesMax = OUTPUT_BYTES_MAX } = options;
  const limit = AbortSignal.timeout(options.timeoutMs);
  const program = startConfined(command);
  const { kill } = program;
  const { signal: either, unlink } = linkSignals(options.signal, limit);
  either.addEventListener("abort", kill, { once: true });
  const chunks: Buffer[] = [];
  let bytes = 0;
  program.stdout.on("data", (chunk: Buffer) => {
    if (bytes < outputBytesMax) chunks.push(chunk);
    bytes += chunk.byteLength;
  });
  if (command.secret === undefined) program.stdin.end();
  try {
    const exitCode = await program.ended;
    options.signal.throwIfAborted();
    if (limit.aborted) {
      const seconds = Math.round(options.timeoutMs / 1_000);
      throw new WorkspaceError("UNAVAILABLE", `${command.file}: did not end within ${seconds} s`);
    }
    const stdout = Buffer.concat(chunks).subarray(0, outputBytesMax).toString();
    return { exitCode, stdout, stderr: program.words() };
  } finally {
    either.removeEventListener("abort", kill);
    unlink();
  }
}

/**
 * Returns the command line, in which `setpriv` drops every privilege before the program starts. It contains only
 * constants and the caller's arguments.
 */
function commandLine(command: ConfinedCommand): string[] {
  const { file, args, capabilities = [], directory, secret, offline, background } = command;
  const kept = ["-all", ...capabilities.map((name) => `+${name}`)].join(",");
  const script = `${ENTER_DIRECTORY}\n${secret === undefined ? EXECUTE : EXECUTE_WITH_SECRET}`;
  return [
    ...(background ? ["nice", "-n", "10"] : []),
    ...["unshare", "--mount", ...(offline ? ["--net"] : []), "--"],
    ...["sh", "-c", script, "sh", directory],
    ...["setpriv", `--reuid=${WORKSPACE_UID}`, `--regid=${WORKSPACE_GID}`, "--clear-groups"],
    ...["--no-new-privs", "--pdeathsig=KILL"],
    ...[`--inh-caps=${kept}`, `--ambient-caps=${kept}`, `--bounding-set=${kept}`, "--"],
    ...[file, ...args],
  ];
}

function killGroup(pid: number): void {
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // The program has ended meanwhile.
  }
}
