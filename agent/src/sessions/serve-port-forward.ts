import { once } from "node:events";
import type { Duplex } from "node:stream";
import type { PortForwardOptions, SessionEnd } from "@forage/proto/forage/agent/v1/agent";
import { ENDED_WELL, type Session } from "./session.ts";

/** Connects to a port of the pod. Rejects with an error for the user. Each side of the stream can end separately. */
export type DialPod = (podUid: string, port: number, signal: AbortSignal) => Promise<Duplex>;

/**
 * Serves one connection. The end of each side is passed on to the other. The connection ends when both sides have
 * ended, or when it breaks.
 */
export async function servePortForward(
  session: Session,
  { port }: PortForwardOptions,
  dial: DialPod,
): Promise<SessionEnd> {
  const { podUid, writer, signal } = session;
  const dialled = dial(podUid, port, signal);
  // Input waits for the connection: early input is kept, and no more is read.
  session.readInput({
    data: async (data) => send(await dialled, data),
    closed: async () => void (await dialled).end(),
  });
  const connection = await dialled;
  const closed = new Promise<void>((resolve) => connection.once("close", resolve));
  const abort = () => connection.destroy();
  signal.addEventListener("abort", abort, { once: true });
  if (signal.aborted) abort();
  try {
    for await (const chunk of readable(connection)) await writer.data("stdout", chunk);
    await writer.send({ $case: "stdoutClosed", value: true });
    await closed;
    return ENDED_WELL;
  } catch (error) {
    if (signal.aborted) throw error;
    const { code = "" } = error as NodeJS.ErrnoException;
    throw new Error(`the pod broke the connection to port ${port}${code && ` (${code})`}`, { cause: error });
  } finally {
    signal.removeEventListener("abort", abort);
    connection.destroy();
  }
}

/** Returns the chunks of a connection. Leaving the loop, early or not, keeps the writing side open. */
function readable(connection: Duplex): AsyncIterable<Uint8Array> {
  return connection.iterator({ destroyOnReturn: false });
}

async function send(connection: Duplex, data: Uint8Array): Promise<void> {
  if (connection.destroyed || connection.writableEnded)
    throw new Error("the connection accepts no more data");
  if (connection.write(data)) return;
  const over = new AbortController();
  const end = () => over.abort();
  connection.once("close", end);
  try {
    await once(connection, "drain", { signal: over.signal });
  } finally {
    connection.off("close", end);
  }
}
