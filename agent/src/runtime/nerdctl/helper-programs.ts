import { createHash, randomBytes } from "node:crypto";
import { chmod, mkdir, readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type ContainerSpec, RuntimeError } from "../runtime.ts";

/** Programs of ours that containers with a terminal or an open standard input need; both are only waiting. */
export interface HelperPrograms {
  /** Appends a terminal's output (descriptor 3) to the file named by its last argument; about 1 MB while the container lives. */
  readonly terminalLogger: string;
  /** Takes runc's place; runs only while runc does. */
  readonly stdinRuntime: string;
}

// By containerd's protocol: the output is descriptor 3, and closing 5 says that the program is ready.
const TERMINAL_LOGGER = `#!/bin/sh
exec 4<&- 5>&-
exec cat <&3 >>"$2"
`;

/**
 * Writes the programs that the container needs, if they aren't there yet. `dir` must allow execution (Debian's /run doesn't) and stay:
 * a container's `stdinRuntime` is called for it until it is removed. START_FAILED for a runtime that can't keep stdin open.
 */
export async function prepareHelpers(
  dir: string,
  { stdin = false, tty = false, ociRuntime }: Pick<ContainerSpec, "stdin" | "tty" | "ociRuntime">,
): Promise<HelperPrograms> {
  const terminalLogger = join(dir, "terminal-logger");
  const program = stdinRuntimeProgram(ociRuntime ?? "runc");
  const stdinRuntime = join(dir, `stdin-${createHash("sha256").update(program).digest("hex").slice(0, 12)}`);
  if (tty) await writeProgram(dir, terminalLogger, TERMINAL_LOGGER);
  else if (stdin) {
    if (ociRuntime !== undefined && !ociRuntime.startsWith("/"))
      throw new RuntimeError(
        "START_FAILED",
        `stdin without tty can't be kept open by the runtime ${ociRuntime}`,
        {
          retryable: false,
        },
      );
    await writeProgram(dir, stdinRuntime, program);
  }
  return { terminalLogger, stdinRuntime };
}

/**
 * A detached container of nerdctl's has no input at all. This gives it a pipe whose both ends it holds itself, so that reading waits
 * and never sees an end, and no process has to hold the other end.
 */
function stdinRuntimeProgram(ociRuntime: string): string {
  return `#!/bin/sh
for word; do
  if [ "$word" = create ]; then
    dir=$(mktemp -d) && mkfifo "$dir/stdin" && exec 0<>"$dir/stdin" && rm -r "$dir" || exit 1
    break
  fi
done
exec '${ociRuntime.replaceAll("'", "'\\''")}' "$@"
`;
}

async function writeProgram(dir: string, path: string, text: string): Promise<void> {
  if ((await readFile(path, "utf8").catch(() => "")) === text) return;
  await mkdir(dir, { recursive: true, mode: 0o700 });
  const partial = `${path}.${randomBytes(6).toString("hex")}`;
  await writeFile(partial, text, { mode: 0o700 });
  // The umask may have taken a bit away.
  await chmod(partial, 0o700);
  await rename(partial, path);
}
