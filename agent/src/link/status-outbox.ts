import type { PodStatus } from "../pods/decide/pod-status.ts";

// A message of this many statuses is far below a MiB even if all contain last log lines.
const BATCH_MAX = 100;

/** Holds the newest unsent status of each pod. Bounded by the number of pods. */
export class StatusOutbox {
  readonly #pending = new Map<string, PodStatus>();
  #wake: (() => void) | undefined;

  put(status: PodStatus): void {
    this.#pending.set(status.uid, status);
    this.#wake?.();
  }

  drop(podUid: string): void {
    this.#pending.delete(podUid);
  }

  /** Drops all waiting statuses, because a hello contains them. */
  clear(): void {
    this.#pending.clear();
  }

  takeBatch(): readonly PodStatus[] {
    const batch = [...this.#pending.values()].slice(0, BATCH_MAX);
    for (const { uid } of batch) this.#pending.delete(uid);
    return batch;
  }

  /** Resolves when there is a status to take, or when the signal aborts. Supports one waiter at a time. */
  async filled(signal: AbortSignal): Promise<void> {
    if (this.#pending.size > 0 || signal.aborted) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#wake = resolve;
    const stop = () => resolve();
    signal.addEventListener("abort", stop, { once: true });
    await promise;
    // The signal lives as long as the connection, but a wait only until the next status.
    signal.removeEventListener("abort", stop);
    if (this.#wake === resolve) this.#wake = undefined;
  }
}
