import type { ExecOptions, SessionEnd } from "@forage/proto/forage/agent/v1/agent";
import type { ContainerRun } from "../pods/find-container.ts";
import type { ContainerInput, OpenInput } from "./container-input.ts";
import type { ReadLog } from "./serve-logs.ts";
import type { Session } from "./session.ts";

export interface AttachSources {
  readonly readLog: ReadLog;
  readonly openInput: OpenInput;
  /** Returns the exit code of a container's run that has ended. Undefined if it is not known. */
  readonly exitCodeOf: (podUid: string, run: ContainerRun) => number | undefined;
  readonly nowMs: () => number;
}

/**
 * Follows the output of a container's own program, and passes input on to it. Ends with the container and with its exit code. Where no
 * input can be passed on, a line on stderr says so.
 */
export async function serveAttach(
  { podUid, found, writer, signal, readInput }: Session,
  { stdin }: Pick<ExecOptions, "stdin">,
  { readLog, openInput, exitCodeOf, nowMs }: AttachSources,
): Promise<SessionEnd> {
  const { id, container, attempt, input: kind } = found;
  if (id === undefined) throw new Error(`container ${container} is not running`);
  const sinceMs = nowMs() - FILE_TICK_MS;
  const input: ContainerInput | undefined =
    stdin && kind === "pipe" ? await openInput(id, signal) : undefined;
  if (stdin && input === undefined)
    await writer.data("stderr", Buffer.from(`container ${container} ${NOTES[kind ?? "none"]}\n`));
  readInput({ data: async (data) => input?.write(data), closed: () => input?.close() });
  try {
    const of = { podUid, container, attempt };
    const options = { follow: true, timestamps: false, sinceMs };
    for await (const data of readLog(of, options, signal)) await writer.data("stdout", data);
    // The reader ends without an error. The signal carries the reason.
    signal.throwIfAborted();
    const exitCode = exitCodeOf(podUid, { container, attempt });
    if (exitCode !== undefined) return { exitCode, error: "" };
    throw new Error(`container ${container} has ended, and its exit code is not known`);
  } finally {
    input?.close();
  }
}

/** The kernel dates writes to a file by its tick, which is up to 10 ms behind the clock. */
const FILE_TICK_MS = 10;

const NOTES: Readonly<Record<"none" | "pipe" | "terminal", string>> = {
  none: "has no open standard input (stdin: true in its manifest): only its output is followed",
  pipe: "takes no input: only its output is followed",
  terminal:
    "has a terminal, and nothing holds its other end: only its output is followed; exec -it opens another one",
};
