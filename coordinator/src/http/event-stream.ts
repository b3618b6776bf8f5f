/** The interval of heartbeats, below the usual 60 s after which proxies close idle connections. */
const HEARTBEAT_MS = 15_000;
/** The delay after which browsers reconnect. */
const RETRY_MS = 2_000;

/** The headers of a stream of server-sent events. */
export const EVENT_STREAM_HEADERS = {
  "content-type": "text/event-stream",
  "cache-control": "no-store",
  "x-accel-buffering": "no",
} as const;

export interface EventStreamOptions {
  readonly schedule: (delayMs: number, run: () => void) => () => void;
  /** Called once when the batches end or the client disconnects. */
  readonly end: () => void;
}

/**
 * Returns the body of a response that sends each batch as server-sent events, with heartbeats in
 * between. The next batch is requested only after the client has read the last one, so that nothing
 * accumulates for a slow client.
 */
export function eventStream<Batch>(
  batches: AsyncGenerator<Batch>,
  format: (batch: Batch) => string,
  { schedule, end }: EventStreamOptions,
): ReadableStream<Uint8Array> {
  const text = new TextEncoder();
  let stopBeating = (): void => {};
  const finish = (): void => {
    stopBeating();
    end();
  };
  return new ReadableStream<Uint8Array>({
    start: (controller) => {
      controller.enqueue(text.encode(`retry: ${RETRY_MS}\n\n`));
      const beat = (): void => {
        stopBeating = schedule(HEARTBEAT_MS, () => {
          // One unread heartbeat is enough.
          if ((controller.desiredSize ?? 0) > 0) controller.enqueue(text.encode(":\n\n"));
          beat();
        });
      };
      beat();
    },
    pull: async (controller) => {
      try {
        const { done, value } = await batches.next();
        if (!done) return controller.enqueue(text.encode(format(value)));
        finish();
        controller.close();
      } catch (error) {
        finish();
        controller.error(error);
      }
    },
    cancel: async () => {
      finish();
      await batches.return(undefined);
    },
  });
}
