import { RuntimeError, type RuntimeExec, type RuntimeExecOptions } from "../runtime.ts";
import { type ExecMark, killMarked } from "./exec-marks.ts";
import { ExecOutput } from "./exec-output.ts";
import { startPiped } from "./exec-piped.ts";
import type { ExecDependencies, ExecProcess } from "./exec-process.ts";
import { execOutcomeOf } from "./exec-result.ts";
import type { MarkedExec } from "./exec-starts.ts";
import { startTerminal } from "./exec-terminal.ts";

/**
 * Starts the command at once. Errors reject `exitCode`. The caller must read the output or leave its iterator;
 * otherwise the command blocks.
 */
export function startExec(
  dependencies: ExecDependencies,
  id: string,
  options: RuntimeExecOptions,
  signal: AbortSignal,
): RuntimeExec {
  const output = new ExecOutput();
  const begun = begin(dependencies, id, options, output, signal);
  const exitCode = begun.then(({ process, mark, release }) =>
    follow(dependencies, id, mark, process, output, signal).finally(release),
  );
  const end = exitCode.finally(() => output.end());
  // Without this handler, an error would crash the agent if the caller only reads the output.
  end.catch(() => undefined);
  return {
    output,
    exitCode: end,
    write: async (data) => {
      if (!options.stdin)
        throw new RuntimeError("UNKNOWN", "this exec has no standard input", { retryable: false });
      await (await begun).process.write(data);
    },
    endInput: () =>
      void begun.then(
        ({ process }) => process.endInput(),
        () => undefined,
      ),
    resize: (columns, rows) =>
      void begun.then(
        ({ process }) => process.resize(columns, rows),
        () => undefined,
      ),
  };
}

async function begin(
  dependencies: ExecDependencies,
  id: string,
  options: RuntimeExecOptions,
  output: ExecOutput,
  signal: AbortSignal,
): Promise<MarkedExec<ExecProcess> & { readonly release: () => void }> {
  const { cli, limit, starts } = dependencies;
  const release = await limit.enter(signal);
  try {
    const args = execArguments(id, options);
    const started = await starts.start(id, signal, async () =>
      options.tty
        ? await startTerminal(dependencies, args, options, output)
        : startPiped(cli, args, options.stdin, output),
    );
    return { ...started, release };
  } catch (error) {
    release();
    throw error;
  }
}

/**
 * Returns the arguments. As with run, options are joined to their values, the first `--` ends the options, and nerdctl
 * drops the second.
 */
export function execArguments(id: string, options: RuntimeExecOptions): readonly string[] {
  return [
    "exec",
    ...(options.stdin || options.tty ? ["--interactive"] : []),
    ...(options.tty ? ["--tty", "--env=TERM=xterm-256color"] : []),
    "--",
    id,
    "--",
    ...options.command,
  ];
}

async function follow(
  dependencies: ExecDependencies,
  id: string,
  mark: ExecMark | undefined,
  process: ExecProcess,
  output: ExecOutput,
  signal: AbortSignal,
): Promise<number> {
  let given: Promise<void> | undefined;
  const giveUp = () => {
    given ??= kill(dependencies, id, mark, process);
  };
  if (signal.aborted) giveUp();
  signal.addEventListener("abort", giveUp, { once: true });
  const { exitCode, lastWords } = await process.ended;
  signal.removeEventListener("abort", giveUp);
  if (given !== undefined) {
    await given;
    throw new RuntimeError("ABORTED", "exec: cancelled", { retryable: true });
  }
  const verdict = execOutcomeOf(exitCode, lastWords);
  if (verdict.complaint !== undefined) output.push("stderr", Buffer.from(verdict.complaint));
  return verdict.exitCode;
}

async function kill(
  dependencies: ExecDependencies,
  id: string,
  mark: ExecMark | undefined,
  process: ExecProcess,
): Promise<void> {
  let ended = false;
  const end = () => {
    ended = true;
  };
  process.ended.then(end, end);
  const cgroup = await dependencies.cgroupOf(id).catch(() => undefined);
  // nerdctl ends by itself once its command has ended, and cleans up. If it doesn't end, it is killed.
  if (cgroup !== undefined && mark !== undefined)
    await killMarked(cgroup, mark, dependencies.clock, () => ended);
  process.kill();
}
