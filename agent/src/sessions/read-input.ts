import type { ServeResponse } from "@forage/proto/forage/agent/v1/agent";
import type { ServeStream } from "./frame-writer.ts";
import type { InputConsumer } from "./session.ts";

/**
 * Passes input to `taker` until the client ends its stream. Never rejects, because a broken stream has no reader for
 * the error.
 */
export async function readInput(taker: InputConsumer, stream: ServeStream): Promise<void> {
  let taking = true;
  try {
    for await (const { frame } of stream as AsyncIterable<ServeResponse>) {
      if (frame === undefined || !taking) continue;
      // A session that accepts no more input may still produce output.
      await pass(frame, taker).catch(() => {
        taking = false;
      });
    }
  } catch {
    // The stream broke.
  }
}

async function pass(frame: NonNullable<ServeResponse["frame"]>, taker: InputConsumer): Promise<void> {
  switch (frame.$case) {
    case "stdin":
      return taker.data?.(frame.value);
    case "stdinClosed":
      return taker.closed?.();
    case "resize":
      return taker.resize?.(frame.value.columns, frame.value.rows);
    case "imageMissing":
      return taker.missing?.(frame.value.digests);
    default:
      return frame satisfies never;
  }
}
