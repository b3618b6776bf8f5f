import type { SessionEnd } from "@forage/proto/forage/agent/v1/agent";
import { ENDED_WELL, type Session } from "./session.ts";

/** A running copy, or an SFTP session. */
export interface Copy {
  /** The tar stream or the SFTP responses on stdout, and remarks about skipped files on stderr. */
  readonly output: AsyncIterable<{ readonly stream: "stdout" | "stderr"; readonly data: Uint8Array }>;
  /** Passes on the tar stream or the SFTP requests. Rejects once the copy has ended. */
  write(data: Uint8Array): Promise<void>;
  endInput(): void;
  /** Rejects with an error for the user. */
  readonly done: Promise<void>;
}

export type StartCopy<Options> = (
  containerId: string,
  options: Options,
  signal: AbortSignal,
) => Promise<Copy>;

/** Copies one file or directory as a tar stream out of the container or into it, or serves all files by SFTP. */
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
