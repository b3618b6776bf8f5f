import type { Clock } from "../clock.ts";
import { type ContainerRuntime, RuntimeError } from "./runtime.ts";

export type FakeMethod = Exclude<
  keyof ContainerRuntime,
  "events" | "exec" | "usage" | "detailedUsage" | "oomKills" | "close"
>;

export interface FakeCall {
  readonly method: FakeMethod;
  /** The container's name or id, or the image; several ids are joined by commas. */
  readonly subject: string;
  readonly atMs: number;
}

interface Fault {
  readonly error: RuntimeError;
  readonly afterEffect: boolean;
}

/** Scripts errors, delays and hanging of a runtime's calls for a test, and records all calls. */
export class FakeFaults {
  readonly calls: FakeCall[] = [];
  readonly #clock: Clock;
  readonly #faults = new Map<FakeMethod, Fault[]>();
  readonly #delaysMs = new Map<FakeMethod, number>();
  readonly #hangingMs = new Map<FakeMethod, number>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * Makes the next call of `method` reject. With `afterEffect` the call takes effect first, like a call that was
   * interrupted too late.
   */
  fail(method: FakeMethod, error: RuntimeError, options: { readonly afterEffect?: boolean } = {}): void {
    const faults = this.#faults.get(method) ?? [];
    this.#faults.set(method, [...faults, { error, afterEffect: options.afterEffect ?? false }]);
  }

  /** Delays each later call of the method. */
  delay(method: FakeMethod, delayMs: number): void {
    this.#delaysMs.set(method, delayMs);
  }

  /** Makes calls do nothing and reject with TIMEOUT after `timeoutMs`, until `release` is called. */
  hang(method: FakeMethod, timeoutMs = 60_000): { release(): void } {
    this.#hangingMs.set(method, timeoutMs);
    return { release: () => this.#hangingMs.delete(method) };
  }

  async during<T>(
    method: FakeMethod,
    subject: string,
    signal: AbortSignal,
    work: () => T | Promise<T>,
  ): Promise<T> {
    this.calls.push({ method, subject, atMs: this.#clock.nowMs() });
    await this.pass(this.#delaysMs.get(method) ?? 0, signal);
    const hangMs = this.#hangingMs.get(method);
    if (hangMs !== undefined) {
      await this.pass(hangMs, signal);
      throw new RuntimeError("TIMEOUT", `${method}: did not end within ${hangMs} ms`, { retryable: true });
    }
    const fault = this.#faults.get(method)?.shift();
    if (fault && !fault.afterEffect) throw fault.error;
    const result = await work();
    if (fault) throw fault.error;
    return result;
  }

  /** Waits for `delayMs`. Rejects with ABORTED when the signal aborts. */
  pass(delayMs: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const giveUp = () => {
        cancel();
        reject(new RuntimeError("ABORTED", "given up", { retryable: true }));
      };
      if (signal.aborted) return reject(new RuntimeError("ABORTED", "given up", { retryable: true }));
      if (delayMs <= 0) return resolve();
      const cancel = this.#clock.schedule(delayMs, () => {
        signal.removeEventListener("abort", giveUp);
        resolve();
      });
      signal.addEventListener("abort", giveUp, { once: true });
    });
  }
}
