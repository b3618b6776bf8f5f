import { CliError } from "./errors.ts";

/** The longest delay of a timer. Node fires longer ones immediately. */
const MAX_TIMER_MS = 2 ** 31 - 1;
/** The time that a command has to close its session and files after its signal was aborted. */
const END_GRACE_MS = 500;

/**
 * Runs `work` with a signal that aborts with `interrupted`, or after `timeoutMs`. If the work does
 * not end soon after that, for example because it waits for standard input, it is abandoned and the
 * promise rejects with the signal's reason.
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
