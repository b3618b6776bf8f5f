import { RuntimeError, type RuntimeExecOptions } from "../runtime.ts";
import type { ExecOutput } from "./exec-output.ts";
import type { ExecDependencies, ExecProcess } from "./exec-process.ts";
import { openPrivateFile } from "./private-file.ts";
import { repeatResize } from "./repeat-resize.ts";

// nerdctl puts the terminal into raw mode only just before its command runs, and 2.0 then still doubles line breaks.
const SCRIPT = 'stty raw -echo -onlcr; exec "$@" 2>"$0"';
const COLUMNS = 80;
const ROWS = 24;

/**
 * Starts an exec with a terminal. nerdctl's standard error goes to a file, so that the user's terminal doesn't show its
 * messages.
 */
export async function startTerminal(
  { cli, clock, privateDir }: ExecDependencies,
  args: readonly string[],
  options: RuntimeExecOptions,
  output: ExecOutput,
): Promise<ExecProcess> {
  // A native addon that few agents need, so it is loaded with the first terminal.
  const { spawn } = await import("@lydell/node-pty");
  const words = await openPrivateFile(privateDir, "");
  const pty = spawn("/bin/sh", ["-c", SCRIPT, words.path, cli.path, ...cli.argv(args)], {
    name: "xterm-256color",
    cols: options.columns ?? COLUMNS,
    rows: options.rows ?? ROWS,
    cwd: "/",
    env: { ...cli.env },
    encoding: null,
  });
  // The terminal also accepts and returns bytes, contrary to its types.
  const input: { write(data: string | Uint8Array): void } = pty;
  let live = true;
  const sizes = repeatResize(clock, () => pty.kill("SIGWINCH"));
  pty.onData((data: string | Uint8Array) => output.push("stdout", Buffer.from(data as Uint8Array)));
  output.attach([pty]);
  const ended = new Promise<{ exitCode: number | undefined; lastWords: string }>((resolve, reject) => {
    pty.onExit(({ exitCode, signal }) => {
      live = false;
      sizes.close();
      const lastWords = words.read().finally(() => words.close());
      lastWords.then((text) => resolve({ exitCode: signal ? undefined : exitCode, lastWords: text }), reject);
    });
  });
  return {
    ended,
    write: async (data) => {
      if (!live) throw new RuntimeError("UNKNOWN", "the command has ended", { retryable: false });
      input.write(Buffer.from(data));
    },
    // A terminal has no end of input; users send the end-of-file character themselves.
    endInput: () => undefined,
    resize: (columns, rows) => {
      if (!live || columns <= 0 || rows <= 0) return;
      pty.resize(columns, rows);
      sizes.resized();
    },
    kill: () => {
      if (live) pty.kill("SIGKILL");
    },
  };
}
