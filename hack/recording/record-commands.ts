import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import type { RecordedLine } from "./draw-recording.ts";

export interface RecordedCommand {
  readonly text: string;
  /** Default: 0. */
  readonly exitCode?: number;
}

export interface RecordOptions {
  readonly cwd: string;
  readonly env: NodeJS.ProcessEnv;
  /** Returns the command to run for a command that is shown. */
  readonly translate: (command: string) => string;
  /** Returns the text that is shown for a line of output. */
  readonly redact: (line: string) => string;
  readonly monotonicMs: () => number;
  readonly onLine: (line: string) => void;
}

const TYPED_MS_PER_CHARACTER = 35;
const BEFORE_TYPING_MS = 900;
/** Longer pauses in the output are shortened to this, because readers should not wait for an installation. */
const MAX_PAUSE_MS = 1_500;

/** Runs commands one after another in a shell, and returns the text of a terminal with times. */
export async function recordCommands(
  commands: readonly RecordedCommand[],
  options: RecordOptions,
): Promise<readonly RecordedLine[]> {
  const lines: RecordedLine[] = [];
  let shownMs = 0;
  for (const command of commands) {
    const text = `$ ${command.text}`;
    const typedMs = text.length * TYPED_MS_PER_CHARACTER;
    lines.push({ atMs: shownMs + BEFORE_TYPING_MS, text, typedMs });
    shownMs += BEFORE_TYPING_MS + typedMs;
    options.onLine(text);
    let lastMs = options.monotonicMs();
    const advance = (): void => {
      const nowMs = options.monotonicMs();
      shownMs += Math.min(nowMs - lastMs, MAX_PAUSE_MS);
      lastMs = nowMs;
    };
    await runLine(command, options, (line) => {
      advance();
      lines.push({ atMs: Math.round(shownMs), text: options.redact(line) });
      options.onLine(line);
    });
    advance();
  }
  return lines;
}

async function runLine(
  command: RecordedCommand,
  options: RecordOptions,
  onLine: (line: string) => void,
): Promise<void> {
  const child = spawn("bash", ["-c", `exec 2>&1; ${options.translate(command.text)}`], {
    cwd: options.cwd,
    env: options.env,
    stdio: ["ignore", "pipe", "inherit"],
  });
  const ended = new Promise<number | null>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code) => resolve(code));
  });
  for await (const line of createInterface({ input: child.stdout })) onLine(line);
  const code = await ended;
  if (code !== (command.exitCode ?? 0)) throw new Error(`${command.text} ended with exit code ${code}`);
}
