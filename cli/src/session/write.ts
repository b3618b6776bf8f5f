import type { Writable } from "node:stream";

/** Writes data, and waits while the reader is slower. The signal ends the wait. */
export async function write(
  stream: Writable,
  chunk: Uint8Array | string,
  signal: AbortSignal,
): Promise<void> {
  if (stream.write(chunk) || signal.aborted) return;
  await new Promise<void>((resolve) => {
    const finish = (): void => {
      stream.off("drain", finish);
      stream.off("close", finish);
      signal.removeEventListener("abort", finish);
      resolve();
    };
    stream.once("drain", finish);
    stream.once("close", finish);
    signal.addEventListener("abort", finish, { once: true });
  });
}
