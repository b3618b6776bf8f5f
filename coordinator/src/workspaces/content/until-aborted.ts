import { assertNotAborted } from "./content-errors.ts";

/** Passes chunks through, and throws as soon as the signal aborts, even while the source is silent. */
export async function* untilAborted<T>(source: AsyncIterable<T>, signal: AbortSignal): AsyncGenerator<T> {
  const aborted = Promise.withResolvers<never>();
  // It may stay without a reader.
  aborted.promise.catch(() => {});
  const onAbort = (): void => {
    try {
      assertNotAborted(signal);
    } catch (error) {
      aborted.reject(error);
    }
  };
  signal.addEventListener("abort", onAbort, { once: true });
  const iterator = source[Symbol.asyncIterator]();
  let ended = false;
  try {
    onAbort();
    while (true) {
      const next = await Promise.race([iterator.next(), aborted.promise]);
      if (next.done) {
        ended = true;
        return;
      }
      yield next.value;
    }
  } finally {
    signal.removeEventListener("abort", onAbort);
    // A source that is waiting for its next item would let this wait as well.
    if (!ended) void iterator.return?.().catch(() => {});
  }
}
