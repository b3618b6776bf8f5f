import { messageOf } from "@forage/common/message-of";
import type { ExecOptions, SessionEnd } from "@forage/proto/forage/agent/v1/agent";
import type { ContainerRun } from "../pods/find-container.ts";
import type { ContainerInput, OpenInput } from "./container-input.ts";
import type { ReadLog } from "./serve-logs.ts";
import type { Session } from "./session.ts";

export interface AttachSources {
  readonly readLog: ReadLog;
  readonly openInput: OpenInput;
  /** Returns the exit code of a container's run that has ended. Undefined if unknown. */
  readonly exitCodeOf: (podUid: string, run: ContainerRun) => number | undefined;
  readonly nowMs: () => number;
}

export type AttachOptions = Pick<ExecOptions, "stdin" | "endInput"> & Partial<Pick<ExecOptions, "size">>;

/**
 * Follows the output of a container's own program, and passes input on to it. Ends with the container and its exit
 * code. If input can't be passed on, a line on stderr gives the reason.
 */
export async function serveAttach(
  { podUid, found, writer, signal, readInput }: Session,
  options: AttachOptions,
  { readLog, openInput, exitCodeOf, nowMs }: AttachSources,
): Promise<SessionEnd> {
  const { id, container, attempt, input: kind } = found;
  if (id === undefined) throw new Error(`container ${container} is not running`);
  const sinceMs = nowMs() - FILE_TICK_MS;
  const { stdin, endInput: ends = false, size } = options;
  let input: ContainerInput | undefined;
  if (stdin)
    try {
      if (kind === undefined) throw new Error("it has no open standard input (stdin: true in its manifest)");
      input = await openInput({ id, kind, ends }, signal);
    } catch (error) {
      signal.throwIfAborted();
      if (ends) throw error;
      const note = `only the output of container ${container} is followed: ${messageOf(error)}\n`;
      await writer.data("stderr", Buffer.from(note));
    }
  if (size !== undefined) input?.resize(size.columns, size.rows);
  readInput({
    data: async (data) => input?.write(data),
    closed: () => (ends ? input?.end() : input?.close()),
    resize: (columns, rows) => input?.resize(columns, rows),
  });
  try {
    const of = { podUid, container, attempt };
    const following = { follow: true, timestamps: false, sinceMs };
    for await (const data of readLog(of, following, signal)) await writer.data("stdout", data);
    // The reader ends without an error, and the signal has the reason.
    signal.throwIfAborted();
    const exitCode = exitCodeOf(podUid, { container, attempt });
    if (exitCode !== undefined) return { exitCode, error: "" };
    throw new Error(`container ${container} has ended, and its exit code is not known`);
  } finally {
    input?.close();
  }
}

/** The kernel's file times are up to one tick, 10 ms, behind the clock. */
const FILE_TICK_MS = 10;
