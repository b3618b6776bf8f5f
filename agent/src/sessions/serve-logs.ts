import type { LogOptions, SessionEnd } from "@forage/proto/forage/agent/v1/agent";
import type { LogOf, LogReadOptions } from "../logs/container-logs.ts";
import { ENDED_WELL, type Session } from "./session.ts";

/** Ends by itself unless it follows; then when the container is gone for good. */
export type ReadLog = (of: LogOf, options: LogReadOptions, signal: AbortSignal) => AsyncIterable<Uint8Array>;

export async function serveLogs(
  session: Session,
  { follow, tailLines, previous }: LogOptions,
  read: ReadLog,
): Promise<SessionEnd> {
  const { podUid, found, writer, signal } = session;
  const attempt = previous ? found.attempt - 1 : found.attempt;
  if (attempt < 1) throw new Error(previous ? "it has not been restarted" : "it has not been started yet");
  session.readInput({});
  const options = { follow: follow && !previous, ...(tailLines !== undefined && { tailLines }) };
  const of = { podUid, container: found.container, attempt };
  for await (const data of read(of, options, signal)) await writer.data("stdout", data);
  return ENDED_WELL;
}
