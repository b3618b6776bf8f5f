import { RuntimeError, type RuntimeExec, type RuntimeExecOptions } from "./runtime.ts";

/** The behaviour of a command in a fake container. */
export interface FakeExecScript {
  readonly stdout?: string;
  readonly stderr?: string;
  /** Default: 0. */
  readonly exitCode?: number;
  /** Whether the command writes its input to its output until the input ends. */
  readonly echoes?: boolean;
  /** Whether the command ends only when it is cancelled or its container ends. */
  readonly endless?: boolean;
}

interface Chunk {
  readonly stream: "stdout" | "stderr";
  readonly data: Uint8Array;
}

/**
 * Plays a script as a RuntimeExec. `containerEnded` kills the command. Without a script, there is no such running
 * container.
 */
export function playExec(
  script: FakeExecScript | undefined,
  options: RuntimeExecOptions,
  signal: AbortSignal,
  containerEnded: Promise<void>,
): RuntimeExec {
  const chunks: Chunk[] = [];
  let ended = false;
  let inputEnded = () => {};
  let wake = () => {};
  const say = (stream: Chunk["stream"], data: Uint8Array) => {
    if (data.length > 0) chunks.push({ stream: options.tty ? "stdout" : stream, data });
    wake();
  };
  const exitCode = end();
  exitCode
    .catch(() => undefined)
    .finally(() => {
      ended = true;
      wake();
    });

  async function end(): Promise<number> {
    if (script === undefined)
      throw new RuntimeError("NOT_FOUND", "the container is not running", { retryable: false });
    if (signal.aborted) throw aborted();
    say("stdout", Buffer.from(script.stdout ?? ""));
    say("stderr", Buffer.from(script.stderr ?? ""));
    if (!script.endless && !(script.echoes && options.stdin)) return script.exitCode ?? 0;
    return new Promise((resolve, reject) => {
      signal.addEventListener("abort", () => reject(aborted()), { once: true });
      void containerEnded.then(() => resolve(KILLED));
      if (!script.endless) inputEnded = () => resolve(script.exitCode ?? 0);
    });
  }

  async function* read(): AsyncGenerator<Chunk, void, undefined> {
    for (;;) {
      const chunk = chunks.shift();
      if (chunk) yield chunk;
      else if (ended) return;
      else
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
    }
  }

  return {
    output: { [Symbol.asyncIterator]: read },
    exitCode,
    write: async (data) => {
      if (ended || !options.stdin)
        throw new RuntimeError("UNKNOWN", "the command no longer reads", { retryable: false });
      if (script?.echoes) say("stdout", data);
    },
    endInput: () => inputEnded(),
    resize: () => undefined,
  };
}

// The exit code after SIGKILL: 128 + 9.
const KILLED = 137;

function aborted(): RuntimeError {
  return new RuntimeError("ABORTED", "exec: cancelled", { retryable: true });
}
