import type { ServeResponse } from "@forage/proto/forage/agent/v1/agent";
import type { ServeStream } from "./frame-writer.ts";
import type { InputConsumer } from "./session.ts";

/**
 * Passes input to `consumer` until the client ends its stream. Never rejects, because a broken stream has no reader for
 * the error.
 */
export async function readInput(consumer: InputConsumer, stream: ServeStream): Promise<void> {
  let accepting = true;
  try {
    for await (const { frame } of stream as AsyncIterable<ServeResponse>) {
      if (frame === undefined || !accepting) continue;
      // A session that accepts no more input may still produce output.
      await pass(frame, consumer).catch(() => {
        accepting = false;
      });
    }
  } catch {
    // The stream broke.
  }
}

async function pass(frame: NonNullable<ServeResponse["frame"]>, consumer: InputConsumer): Promise<void> {
  switch (frame.$case) {
    case "stdin":
      return consumer.data?.(frame.value);
    case "stdinClosed":
      return consumer.closed?.();
    case "resize":
      return consumer.resize?.(frame.value.columns, frame.value.rows);
    case "imageMissing":
      return consumer.missing?.(frame.value.digests);
    default:
      return frame satisfies never;
  }
}
