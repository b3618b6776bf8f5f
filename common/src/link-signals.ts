/** A signal that aborts with the first of others, until `unlink` is called. */
export interface LinkedSignal {
  readonly signal: AbortSignal;
  readonly unlink: () => void;
}

/**
 * Links a signal to others. Unlike `AbortSignal.any`, it leaves no listeners on long-lived signals once the caller has
 * called `unlink`.
 */
export function linkSignals(...signals: readonly AbortSignal[]): LinkedSignal {
  const linked = new AbortController();
  const unlink = (): void => {
    for (const signal of signals) signal.removeEventListener("abort", abort);
  };
  const abort = (): void => {
    linked.abort(signals.find(({ aborted }) => aborted)?.reason);
    unlink();
  };
  for (const signal of signals) signal.addEventListener("abort", abort, { once: true });
  if (signals.some(({ aborted }) => aborted)) abort();
  return { signal: linked.signal, unlink };
}

/** Runs work with a signal that aborts with the first of others. Leaves no listeners on them afterwards. */
export async function withLinkedSignal<T>(
  signals: readonly AbortSignal[],
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const { signal, unlink } = linkSignals(...signals);
  try {
    return await work(signal);
  } finally {
    unlink();
  }
}

/** Like `withLinkedSignal`, for work that yields. Leaves no listeners even if it is not read to its end. */
export async function* streamWithLinkedSignal<T>(
  signals: readonly AbortSignal[],
  stream: (signal: AbortSignal) => AsyncIterable<T>,
): AsyncGenerator<T, void, undefined> {
  const { signal, unlink } = linkSignals(...signals);
  try {
    yield* stream(signal);
  } finally {
    unlink();
  }
}
