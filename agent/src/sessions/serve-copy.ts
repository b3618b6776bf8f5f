import type { SessionEnd } from "@forage/proto/forage/agent/v1/agent";
import { ENDED_WELL, type Session } from "./session.ts";

/** A copy under way, or an SFTP session. */
export interface Copy {
  /** The tar stream when copying out, or the answers, and remarks about what was left out. */
  readonly output: AsyncIterable<{ readonly stream: "stdout" | "stderr"; readonly data: Uint8Array }>;
  /** The tar stream when copying in, or the requests; rejects once it is over. */
  write(data: Uint8Array): Promise<void>;
  endInput(): void;
  /** Rejects with what the user is to read. */
  readonly done: Promise<void>;
}

export type StartCopy<Options> = (
  containerId: string,
  options: Options,
  signal: AbortSignal,
) => Promise<Copy>;

/** One file or directory of the container as a tar stream, out of it or into it; or all of its files by SFTP. */
export async function serveCopy<Options>(
  session: Session,
  options: Options,
  start: StartCopy<Options>,
): Promise<SessionEnd> {
  const { found, writer, signal } = session;
  if (found.id === undefined) throw new Error(`container ${found.container} is not running`);
  const started = start(found.id, options, signal);
  started.catch(() => undefined);
  session.readInput({
    data: async (data) => (await started).write(data),
    closed: async () => (await started).endInput(),
  });
  const copy = await started;
  for await (const { stream, data } of copy.output) await writer.data(stream, data);
  await copy.done;
  return ENDED_WELL;
}
