import { CliError } from "./errors.ts";

/** The longest timer. Node fires longer ones at once. */
const MAX_TIMER_MS = 2 ** 31 - 1;
/** The time that a command has to end by itself after its signal is aborted: to close its session and its files. */
const END_GRACE_MS = 500;

/**
 * Runs `work` with a signal that is aborted with `interrupted`, or after `timeoutMs`. Work that does not end soon after that, because it
 * waits for standard input for example, is abandoned: the promise rejects with the signal's reason.
 */
export async function withTimeLimit<T>(
  { interrupted, timeoutMs }: { readonly interrupted: AbortSignal; readonly timeoutMs: number | undefined },
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const timeOut = new AbortController();
  const timers = new Timers();
  const signal = AbortSignal.any([interrupted, timeOut.signal]);
  const abandoned = Promise.withResolvers<never>();
  const abandon = (): void => timers.after(END_GRACE_MS, () => abandoned.reject(signal.reason));
  if (signal.aborted) abandon();
  signal.addEventListener("abort", abandon, { once: true });
  if (timeoutMs !== undefined) {
    const reason = new CliError("TIMED_OUT", "the time given by --timeout is over");
    timers.after(timeoutMs, () => timeOut.abort(reason));
  }
  try {
    return await Promise.race([work(signal), abandoned.promise]);
  } finally {
    signal.removeEventListener("abort", abandon);
    timers.close();
  }
}

class Timers {
  readonly #open = new Set<NodeJS.Timeout>();

  after(ms: number, run: () => void): void {
    const nowMs = Math.min(ms, MAX_TIMER_MS);
    const timer = setTimeout(() => {
      this.#open.delete(timer);
      if (ms > nowMs) this.after(ms - nowMs, run);
      else run();
    }, nowMs);
    this.#open.add(timer);
  }

  close(): void {
    for (const timer of this.#open) clearTimeout(timer);
    this.#open.clear();
  }
}
