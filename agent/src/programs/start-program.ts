import { PassThrough, type Readable, type Writable } from "node:stream";
import { execa, type Options } from "execa";

export interface StartOptions {
  /** The complete environment; nothing of the agent's own is added. */
  readonly env: Readonly<Record<string, string>>;
  /** Whether the caller writes standard input. Otherwise the program reads an empty one. */
  readonly stdin?: boolean;
}

/** The end of a program. Without an exit code and a signal, the program could not be started. */
export interface ProgramEnd {
  readonly exitCode: number | undefined;
  readonly signal: NodeJS.Signals | undefined;
  /** The reason why the program could not be started. */
  readonly error: NodeJS.ErrnoException | undefined;
}

export interface StartedProgram {
  readonly stdin: Writable | undefined;
  /** Standard output. The caller must read it and standard error to their end. */
  readonly stdout: Readable;
  readonly stderr: Readable;
  /** Resolves when the program has ended and no process holds its output open. Never rejects. */
  readonly ended: Promise<ProgramEnd>;
  kill(signal: NodeJS.Signals): void;
}

const OPTIONS = {
  extendEnv: false,
  reject: false,
  // Callers read the output as it arrives. The program outlives the agent, because ending it with the agent would leave
  // a half-created container.
  buffer: false,
  cleanup: false,
  forceKillAfterDelay: false,
  stripFinalNewline: false,
} as const satisfies Options;

/** Starts a program without a shell. A failure to start is reported as its end. */
export function startProgram(
  file: string,
  args: readonly string[],
  { env, stdin = false }: StartOptions,
): StartedProgram {
  // A zero byte would throw, whereas all other failures to start are results.
  const zeroByte = [file, ...args, ...Object.values(env)].some((text) => text.includes("\0"));
  if (zeroByte) return notStarted(new Error(`${file}: a zero byte in its arguments or environment`));
  const child = execa(file, args, { ...OPTIONS, env, stdin: stdin ? "pipe" : "ignore" });
  // A program that does not read its input closes the pipe; writers get the error from their own call.
  child.stdin?.on("error", () => undefined);
  return {
    stdin: child.stdin ?? undefined,
    ...{ stdout: child.stdout, stderr: child.stderr },
    ended: child.then(({ exitCode, signal, cause }) => {
      const started = exitCode !== undefined || signal !== undefined;
      return { exitCode, signal, error: started ? undefined : (cause as NodeJS.ErrnoException) };
    }),
    kill: (signal) => void child.kill(signal),
  };
}

function notStarted(error: NodeJS.ErrnoException): StartedProgram {
  const ended = Promise.resolve({ exitCode: undefined, signal: undefined, error });
  return { stdin: undefined, stdout: endedStream(), stderr: endedStream(), ended, kill: () => undefined };
}

function endedStream(): Readable {
  return new PassThrough().end();
}
