/** A signal that is aborted with the first of others, until `unlink`. */
export interface LinkedSignal {
  readonly signal: AbortSignal;
  readonly unlink: () => void;
}

/**
 * Links a signal to others. Unlike with `AbortSignal.any`, nothing is left in a signal that lives long once the link has ended: the
 * caller ends it when its work is over.
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

/** Runs the work with a signal that is aborted with the first of others. Nothing is left in them once the work is over. */
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

/** The same for work that yields. Nothing is left in the signals either if it is not read to its end. */
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
