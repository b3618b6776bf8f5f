import type { DriverTaskEvent } from "@forage/proto/plugins/drivers/proto/driver";
import { DriverError } from "../driver-error.ts";
import { toTimestamp } from "./timestamp.ts";

export interface TaskEventSubject {
  readonly id: string;
  readonly allocId: string;
  readonly name: string;
}

// Nomad opens one stream; a few more are debuggers.
const SUBSCRIBERS_MAX = 16;
// A subscriber that reads too slowly loses the oldest events, which only inform people.
const QUEUED_MAX = 1_000;

interface Subscriber {
  readonly queue: DriverTaskEvent[];
  wake: () => void;
}

/**
 * Publishes the events of tasks that Nomad shows to the operator. Subscribers receive events from the moment they subscribed.
 */
export class TaskEvents {
  readonly #subscribers = new Set<Subscriber>();
  readonly #nowMs: () => number;

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  publish(
    { id, allocId, name }: TaskEventSubject,
    message: string,
    annotations: Readonly<Record<string, string>> = {},
  ): void {
    const event = {
      ...{ taskId: id, allocId, taskName: name, message, annotations: { ...annotations } },
      timestamp: toTimestamp(this.#nowMs()),
    };
    for (const subscriber of this.#subscribers) {
      subscriber.queue.push(event);
      if (subscriber.queue.length > QUEUED_MAX) subscriber.queue.shift();
      subscriber.wake();
    }
  }

  /** Yields events until the signal aborts. */
  async *subscribe(signal: AbortSignal): AsyncGenerator<DriverTaskEvent, void, undefined> {
    if (this.#subscribers.size >= SUBSCRIBERS_MAX)
      throw new DriverError("FAILED_PRECONDITION", `TaskEvents: ${SUBSCRIBERS_MAX} streams are open already`);
    const subscriber: Subscriber = { queue: [], wake: () => undefined };
    this.#subscribers.add(subscriber);
    const stop = (): void => subscriber.wake();
    signal.addEventListener("abort", stop, { once: true });
    try {
      while (!signal.aborted) {
        const event = subscriber.queue.shift();
        if (event !== undefined) yield event;
        else
          await new Promise<void>((resolve) => {
            subscriber.wake = resolve;
          });
      }
    } finally {
      signal.removeEventListener("abort", stop);
      this.#subscribers.delete(subscriber);
    }
  }
}
