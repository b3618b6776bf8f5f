import { assertNotAborted } from "./content-errors.ts";

/** Passes chunks through, and throws as soon as the signal aborts, even while the source is silent. */
export async function* untilAborted<T>(source: AsyncIterable<T>, signal: AbortSignal): AsyncGenerator<T> {
  let fail = (_error: unknown): void => {};
  const onAbort = (): void => {
    try {
      assertNotAborted(signal);
    } catch (error) {
      fail(error);
    }
  };
  signal.addEventListener("abort", onAbort, { once: true });
  const iterator = source[Symbol.asyncIterator]();
  let ended = false;
  try {
    while (true) {
      assertNotAborted(signal);
      // A promise for each item: one that lives as long as the stream would hold every item that ever raced with it.
      const next = await new Promise<IteratorResult<T>>((resolve, reject) => {
        fail = reject;
        iterator.next().then(resolve, reject);
      });
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
