import { RuntimeError, type RuntimeEvent } from "./runtime.ts";

// A reader this far behind has to list again. The queue then holds about 2 MB.
const LENGTH_MAX = 10_000;

/** Queues events for one reader. A reader that falls too far behind gets an error, so that the queue stays bounded. */
export class EventQueue {
  #events: RuntimeEvent[] = [];
  #end: { readonly error?: RuntimeError } | undefined;
  #wake: (() => void) | undefined;

  push(event: RuntimeEvent): void {
    if (this.#end !== undefined) return;
    if (this.#events.length < LENGTH_MAX) this.#events.push(event);
    else
      this.fail(
        new RuntimeError("UNAVAILABLE", `more than ${LENGTH_MAX} events are unread`, { retryable: true }),
      );
    this.#wake?.();
  }

  /** Closes the queue. The reader still receives queued items. */
  close(): void {
    this.#end ??= {};
    this.#wake?.();
  }

  fail(error: RuntimeError): void {
    this.#end ??= { error };
    this.#wake?.();
  }

  async *read(): AsyncGenerator<RuntimeEvent, void, undefined> {
    for (;;) {
      const events = this.#events;
      this.#events = [];
      yield* events;
      if (this.#events.length > 0) continue;
      if (this.#end?.error) throw this.#end.error;
      if (this.#end) return;
      await new Promise<void>((wake) => {
        this.#wake = wake;
      });
    }
  }
}
