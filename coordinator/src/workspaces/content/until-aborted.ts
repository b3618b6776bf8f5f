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
      // Each item has its own promise: a promise with the stream's lifetime would retain every item
      // that was raced against it.
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
    // The result is not awaited: `return` of a source that waits for its next item does not settle
    // before that item.
    if (!ended) void iterator.return?.().catch(() => {});
  }
}
