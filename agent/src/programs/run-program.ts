import type { Readable } from "node:stream";
import { type ProgramEnd, startProgram } from "./start-program.ts";

export interface RunOptions {
  /** The complete environment; nothing of the agent's own is added. */
  readonly env: Readonly<Record<string, string>>;
  /** Text for standard input. Default: empty. */
  readonly input?: string;
  readonly timeoutMs: number;
  /** The limit of kept bytes of standard output, and of standard error. */
  readonly outputBytesMax: number;
  readonly signal?: AbortSignal;
  /**
   * The time after which a killed program is abandoned, because one that is stuck in the kernel does not end. Default:
   * 5 s.
   */
  readonly killPatienceMs?: number;
}

/** The reason why a program was killed. */
export type KilledFor = "timeout" | "cancelled" | "too-much-output";

export interface ProgramResult extends ProgramEnd {
  readonly stdout: string;
  readonly stderr: string;
  readonly killedFor: KilledFor | undefined;
}

const KILL_PATIENCE_MS = 5_000;

/**
 * Runs a program without a shell to its end and returns its output. Kills it with SIGKILL after the time limit, when
 * the signal aborts or if it writes too much. Never rejects. A process that does not end even after SIGKILL is
 * abandoned.
 */
export async function runProgram(
  file: string,
  args: readonly string[],
  options: RunOptions,
): Promise<ProgramResult> {
  const { env, input, timeoutMs, outputBytesMax, signal, killPatienceMs = KILL_PATIENCE_MS } = options;
  if (signal?.aborted) return { ...NOT_ENDED, stdout: "", stderr: "", killedFor: "cancelled" };
  const program = startProgram(file, args, { env, stdin: input !== undefined });
  let killedFor: KilledFor | undefined;
  let patience: NodeJS.Timeout | undefined;
  const { promise: stuck, resolve: leaveBehind } = Promise.withResolvers<ProgramEnd>();
  const kill = (why: KilledFor): void => {
    killedFor ??= why;
    program.kill("SIGKILL");
    patience ??= setTimeout(() => leaveBehind(NOT_ENDED), killPatienceMs);
  };
  const cancel = (): void => kill("cancelled");
  const timer = setTimeout(() => kill("timeout"), timeoutMs);
  signal?.addEventListener("abort", cancel, { once: true });
  const streams = [program.stdout, program.stderr] as const;
  const [stdout, stderr] = streams.map((it) => collect(it, outputBytesMax, () => kill("too-much-output")));
  program.stdin?.end(input);
  const end = await Promise.race([program.ended, stuck]);
  clearTimeout(timer);
  clearTimeout(patience);
  signal?.removeEventListener("abort", cancel);
  if (end === NOT_ENDED) for (const stream of streams) stream.destroy();
  return { ...end, stdout: textOf(stdout), stderr: textOf(stderr), killedFor };
}

const NOT_ENDED: ProgramEnd = { exitCode: undefined, signal: undefined, error: undefined };

function collect(stream: Readable, bytesMax: number, onTooMuch: () => void): readonly Buffer[] {
  const chunks: Buffer[] = [];
  let left = bytesMax;
  stream.on("data", (chunk: Buffer) => {
    if (left > 0) chunks.push(chunk.subarray(0, left));
    left -= chunk.length;
    if (left < 0) onTooMuch();
  });
  return chunks;
}

function textOf(chunks: readonly Buffer[] = []): string {
  return Buffer.concat(chunks).toString("utf8");
}
