import type { LogOptions, SessionEnd } from "@forage/proto/forage/agent/v1/agent";
import type { LogOf, LogReadOptions } from "../logs/container-logs.ts";
import { ENDED_WELL, type Session } from "./session.ts";

/** Reads a log. Ends at the log's end, or with `follow` when the container has ended for good. */
export type ReadLog = (of: LogOf, options: LogReadOptions, signal: AbortSignal) => AsyncIterable<Uint8Array>;

export async function serveLogs(session: Session, options: LogOptions, read: ReadLog): Promise<SessionEnd> {
  const { podUid, found, writer, signal } = session;
  const attempt = options.previous ? found.attempt - 1 : found.attempt;
  if (attempt < 1)
    throw new Error(options.previous ? "it has not been restarted" : "it has not been started yet");
  session.readInput({});
  const of = { podUid, container: found.container, attempt };
  for await (const data of read(of, readOptions(options), signal)) await writer.data("stdout", data);
  // The reader ends without an error, and the signal has the reason.
  signal.throwIfAborted();
  return ENDED_WELL;
}

function readOptions({ follow, previous, tailLines, since, timestamps, stream }: LogOptions): LogReadOptions {
  if (stream !== "" && stream !== "stdout" && stream !== "stderr")
    throw new Error(`"${stream}" is not a valid stream: must be stdout or stderr`);
  return {
    follow: follow && !previous,
    timestamps,
    ...(tailLines !== undefined && { tailLines }),
    ...(since !== undefined && { sinceMs: Number(since.seconds) * 1000 + Math.floor(since.nanos / 1e6) }),
    ...(stream !== "" && { stream }),
  };
}
