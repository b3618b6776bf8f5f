import { RuntimeError, type RuntimeExec, type RuntimeExecOptions } from "../runtime.ts";
import { type ExecMark, killMarked, newMark } from "./exec-marks.ts";
import { ExecOutput } from "./exec-output.ts";
import { startPiped } from "./exec-piped.ts";
import type { ExecDependencies, ExecProcess } from "./exec-process.ts";
import { execOutcomeOf } from "./exec-result.ts";
import { startTerminal } from "./exec-terminal.ts";

/** Starts the command at once; errors reject `exitCode`. Output must be read (or its iterator left), or the command waits. */
export function startExec(
  dependencies: ExecDependencies,
  id: string,
  options: RuntimeExecOptions,
  signal: AbortSignal,
): RuntimeExec {
  const output = new ExecOutput();
  const mark = newMark();
  const begun = begin(dependencies, id, options, mark, output, signal);
  const exitCode = begun.then(({ process, release }) =>
    follow(dependencies, id, mark, process, output, signal).finally(release),
  );
  const end = exitCode.finally(() => output.end());
  // A caller that only reads the output must not crash the agent.
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
  mark: ExecMark,
  output: ExecOutput,
  signal: AbortSignal,
): Promise<{ readonly process: ExecProcess; readonly release: () => void }> {
  const release = await dependencies.limit.enter(signal);
  try {
    const args = execArguments(id, options, mark);
    const process = options.tty
      ? await startTerminal(dependencies, args, options, output)
      : startPiped(dependencies.cli, args, options.stdin, output);
    return { process, release };
  } catch (error) {
    release();
    throw error;
  }
}

/** As with run: options are joined to their values, the first `--` ends them, and nerdctl drops the second. */
export function execArguments(id: string, options: RuntimeExecOptions, mark: ExecMark): readonly string[] {
  return [
    "exec",
    ...(options.stdin || options.tty ? ["--interactive"] : []),
    ...(options.tty ? ["--tty", "--env=TERM=xterm-256color"] : []),
    `--env=${mark.name}=${mark.value}`,
    "--",
    id,
    "--",
    ...options.command,
  ];
}

async function follow(
  dependencies: ExecDependencies,
  id: string,
  mark: ExecMark,
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
  mark: ExecMark,
  process: ExecProcess,
): Promise<void> {
  let ended = false;
  const end = () => {
    ended = true;
  };
  process.ended.then(end, end);
  const cgroup = await dependencies.cgroupOf(id).catch(() => undefined);
  // With its command gone nerdctl ends by itself and tidies up; it is killed if it doesn't.
  if (cgroup !== undefined) await killMarked(cgroup, mark, dependencies.clock, () => ended);
  process.kill();
}
