import { createHash, randomBytes } from "node:crypto";
import { chmod, mkdir, readdir, readFile, rename, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type ContainerSpec, RuntimeError } from "../runtime.ts";

/**
 * The agent's helper programs for containers with a terminal or with separate streams. They use no CPU while containers
 * run.
 */
export interface HelperPrograms {
  /**
   * Appends the output of a terminal (descriptor 3) to the file named by its last argument. Uses about 1 MB while the
   * container lives.
   */
  readonly terminalLogger: string;
  /**
   * Copies output to the pipes in the directory named by its last argument. Uses about 2 MB while the container lives.
   */
  readonly streamLogger: string;
  /**
   * Wraps runc and runs only while runc does. The container's directory, through which it is called, holds its
   * settings: see `linkRuntime`.
   */
  readonly ownRuntime: string;
}

// containerd's protocol: the output is on descriptor 3, and closing descriptor 5 reports that the program is ready.
const TERMINAL_LOGGER = `#!/bin/sh
exec 4<&- 5>&-
exec cat <&3 >>"$2"
`;

// The program opens both ends of the pipes. Without a reader the output stays in the pipe, and writing never fails.
const STREAM_LOGGER = `#!/bin/sh
exec 1<>"$2/stdout" 2<>"$2/stderr" || exit 1
exec 5<&-
cat <&4 >&2 3<&- &
exec cat <&3 4<&-
`;

type Streams = Pick<ContainerSpec, "stdin" | "tty" | "streamPipes" | "ociRuntime">;

/** Reports whether the container is started through `ownRuntime`. */
export function needsOwnRuntime({ stdin = false, tty = false, streamPipes, ociRuntime }: Streams): boolean {
  return !tty && (stdin || (streamPipes !== undefined && !isShim(ociRuntime)));
}

/**
 * Reports whether `streamLogger` copies the container's output to its pipes. It is needed for terminals, which have no
 * pipes, and for shims, which `ownRuntime` can't wrap.
 */
export function needsStreamLogger({ tty = false, streamPipes, ociRuntime }: Streams): boolean {
  return streamPipes !== undefined && (tty || isShim(ociRuntime));
}

/**
 * Reports whether the OCI runtime is a shim's name such as `io.containerd.kata.v2`, and not the path of a program like
 * runc.
 */
function isShim(ociRuntime: string | undefined): boolean {
  return ociRuntime !== undefined && !ociRuntime.startsWith("/");
}

/**
 * Writes the helper programs that the container needs unless they exist. `dir` must allow execution (Debian's /run
 * doesn't) and must persist, because containerd calls a container's `ownRuntime` until its removal. Throws START_FAILED
 * for a runtime that can't be wrapped.
 */
export async function prepareHelpers(dir: string, spec: Streams): Promise<HelperPrograms> {
  const { tty = false, stdin = false, streamPipes, ociRuntime } = spec;
  const terminalLogger = join(dir, "terminal-logger");
  const apart = streamPipes !== undefined;
  const { name, text } = runtimeProgram(ociRuntime ?? "runc", { stdin, apart });
  const ownRuntime = join(dir, name);
  const streamLogger = join(dir, "stream-logger");
  if (needsStreamLogger(spec)) await writeProgram(dir, streamLogger, STREAM_LOGGER);
  else if (tty) await writeProgram(dir, terminalLogger, TERMINAL_LOGGER);
  if (needsOwnRuntime(spec)) {
    if (ociRuntime !== undefined && isShim(ociRuntime)) throw refusal(ociRuntime, apart);
    await writeProgram(dir, ownRuntime, text);
  }
  return { terminalLogger, streamLogger, ownRuntime };
}

const VARIANTS = [
  { stdin: true, apart: false },
  { stdin: false, apart: true },
  { stdin: true, apart: true },
] as const;

/**
 * Restores missing and damaged programs. Running containers were started through them, and containerd calls them to
 * stop a container, to remove one that has ended and to run a command in it. The text of a program of an earlier
 * version is unknown, so each program that differs between versions has a copy, and the digest in its name shows which
 * of the two is intact.
 *
 * @param ociRuntimes programs like runc that containers may have been started with. `wereWritten`: whether this agent
 * has written the programs of its version before, so that a missing program counts as damaged.
 */
export async function restoreHelpers(
  dir: string,
  ociRuntimes: readonly string[],
  noteDamage: (path: string, reason: string, remedy: string) => void,
  { wereWritten }: { readonly wereWritten: boolean } = { wereWritten: false },
): Promise<void> {
  const known = knownPrograms(ociRuntimes);
  const copies = join(dir, COPIES);
  const present = [...(await namesIn(dir)), ...(await namesIn(copies))];
  for (const name of new Set([...known.keys(), ...present.filter((it) => VERSIONED.test(it))])) {
    const [path, copy] = [join(dir, name), join(copies, name)];
    const [text, kept] = [await readText(path), await readText(copy)];
    const sound = known.get(name) ?? [text, kept].find((it) => it !== undefined && isSound(name, it));
    const isNew = text === undefined && known.has(name) && !wereWritten;
    if (text !== sound && !isNew) noteDamage(path, text === undefined ? MISSING : CHANGED, remedyOf(sound));
    if (kept !== undefined && kept !== sound) noteDamage(copy, CHANGED, remedyOf(sound));
    if (sound === undefined) continue;
    await writeProgram(dir, path, sound);
    if (VERSIONED.test(name)) await writeProgram(copies, copy, sound);
  }
}

/** The directory of copies, inside that of the programs. */
const COPIES = "copies";
/** The names of programs whose content depends on the version. */
const VERSIONED = /^(?:streams|stdin)-([0-9a-f]{12})$/;
const CHANGED = "it is not what the agent wrote";
const MISSING = "it is missing";
const REWRITTEN = "it is written again";
const LOST =
  "containers that an earlier version of the agent started through it can't be stopped or entered until they end by themselves";

/** Returns the programs of this version by name. */
function knownPrograms(ociRuntimes: readonly string[]): ReadonlyMap<string, string> {
  const known = new Map([
    ["terminal-logger", TERMINAL_LOGGER],
    ["stream-logger", STREAM_LOGGER],
  ]);
  for (const ociRuntime of new Set(["runc", ...ociRuntimes]))
    for (const variant of VARIANTS) {
      const { name, text } = runtimeProgram(ociRuntime, variant);
      known.set(name, text);
    }
  return known;
}

function isSound(name: string, text: string): boolean {
  return VERSIONED.exec(name)?.[1] === digestOf(text);
}

function remedyOf(sound: string | undefined): string {
  return sound === undefined ? LOST : REWRITTEN;
}

function namesIn(dir: string): Promise<readonly string[]> {
  return readdir(dir).catch(() => []);
}

function readText(path: string): Promise<string | undefined> {
  return readFile(path, "utf8").catch(() => undefined);
}

function digestOf(program: string): string {
  return createHash("sha256").update(program).digest("hex").slice(0, 12);
}

function refusal(ociRuntime: string, apart: boolean): RuntimeError {
  const what = apart ? "stdout and stderr can't be kept apart" : "stdin without tty can't be kept open";
  return new RuntimeError("START_FAILED", `${what} by the runtime ${ociRuntime}`, { retryable: false });
}

/**
 * Stores the container's settings for `ownRuntime` in the container's directory, and returns the path to call it by.
 */
export async function linkRuntime(
  home: string,
  ownRuntime: string,
  pipes: NonNullable<ContainerSpec["streamPipes"]>,
): Promise<string> {
  const runtime = join(home, "runtime");
  await linkPipes(home, pipes);
  await symlink(ownRuntime, runtime);
  return runtime;
}

/** Links the container's pipes into its directory, where `ownRuntime` or `streamLogger` finds them. */
export async function linkPipes(
  home: string,
  { stdout, stderr }: NonNullable<ContainerSpec["streamPipes"]>,
): Promise<void> {
  await symlink(stdout, join(home, "stdout"));
  await symlink(stderr, join(home, "stderr"));
}

/**
 * The process that keeps a container's standard input open. It is a run of `program` and holds the pipe as
 * `descriptor`.
 */
export const STDIN_HOLDER = { descriptor: 8, program: /\/flock( \(deleted\))?$/ } as const;

/**
 * A script that opens standard input, which detached containers of nerdctl lack. A process that waits for a lock on the
 * pipe holds its other end, and the container's end has the lock. That process ends when the container's end is closed,
 * and the input ends when the process is ended.
 */
export const OPEN_STDIN = `dir=$(mktemp -d) && mkfifo "$dir/stdin" && exec ${STDIN_HOLDER.descriptor}<>"$dir/stdin" 0<"$dir/stdin" &&
      flock 0 && rm -r "$dir" || exit 1
    flock ${STDIN_HOLDER.descriptor} </dev/null >/dev/null 2>&1 &
    exec ${STDIN_HOLDER.descriptor}>&-`;
// Opens both ends again. While the program runs, its output stays in the pipe and writing never fails, even without a
// reader.
const OPEN_STREAMS = `exec 1<>"\${0%/*}/stdout" 2<>"\${0%/*}/stderr" || exit 1`;

interface Program {
  /**
   * The name contains a digest of the content, because a program through which containers were started must never
   * change.
   */
  readonly name: string;
  readonly text: string;
}

function runtimeProgram(ociRuntime: string, { stdin, apart }: { stdin: boolean; apart: boolean }): Program {
  const text = `#!/bin/sh
for word; do
  if [ "$word" = create ]; then
${stdin ? `    ${OPEN_STDIN}\n` : ""}${apart ? `    ${OPEN_STREAMS}\n` : ""}    break
  fi
done
exec '${ociRuntime.replaceAll("'", "'\\''")}' "$@"
`;
  return { name: `${apart ? "streams" : "stdin"}-${digestOf(text)}`, text };
}

async function writeProgram(dir: string, path: string, text: string): Promise<void> {
  if ((await readFile(path, "utf8").catch(() => "")) === text) return;
  await mkdir(dir, { recursive: true, mode: 0o700 });
  const partial = `${path}.${randomBytes(6).toString("hex")}`;
  await writeFile(partial, text, { mode: 0o700 });
  // The umask may have removed a permission.
  await chmod(partial, 0o700);
  await rename(partial, path);
}
