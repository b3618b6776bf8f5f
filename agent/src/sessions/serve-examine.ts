import type { Examination, ExamineOptions, SessionEnd } from "@forage/proto/forage/agent/v1/agent";
import type { HostSession } from "./serve-images.ts";
import { ENDED_WELL } from "./session.ts";

/** Examines this host. One examination runs at a time. */
export type ExamineHost = (options: ExamineOptions) => AsyncIterable<Examination>;

export async function serveExamine(
  { writer, signal, readInput }: HostSession,
  options: ExamineOptions,
  examine: ExamineHost,
): Promise<SessionEnd> {
  readInput({});
  for await (const value of examine(options)) {
    signal.throwIfAborted();
    await writer.send({ $case: "examination", value });
  }
  return ENDED_WELL;
}
