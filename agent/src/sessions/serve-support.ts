import type { SessionEnd, SupportFile } from "@forage/proto/forage/agent/v1/agent";
import type { FrameWriter } from "./frame-writer.ts";
import { ENDED_WELL, type Session } from "./session.ts";

/** Sends the agent's files for a support bundle, each in one frame. */
export async function serveSupport(
  writer: FrameWriter,
  signal: AbortSignal,
  readInput: Session["readInput"],
  files: () => AsyncIterable<SupportFile>,
): Promise<SessionEnd> {
  readInput({});
  for await (const value of files()) {
    signal.throwIfAborted();
    await writer.send({ $case: "supportFile", value });
  }
  return ENDED_WELL;
}
