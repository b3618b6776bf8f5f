import type { Sink } from "../../src/rpc/push.ts";

/** A transport that takes a message only when the test releases it. */
export class HeldSink implements Sink<Buffer> {
  readonly messages: Buffer[] = [];
  failure: unknown;
  #taken: (() => void) | undefined;

  send(message: Buffer, taken: () => void): void {
    if (this.#taken !== undefined) throw new Error("a message was sent before the one before had left");
    this.messages.push(message);
    this.#taken = taken;
  }

  fail(error: unknown): void {
    this.failure = error;
  }

  /** Reports whether there was one to take. */
  take(): boolean {
    const taken = this.#taken;
    this.#taken = undefined;
    taken?.();
    return taken !== undefined;
  }

  /** Until there is nothing on its way. */
  takeAll(): void {
    while (this.take());
  }
}

/** Runs deferred work when a test says so. */
export class Deferred {
  #work: (() => void)[] = [];

  readonly defer = (run: () => void): void => {
    this.#work.push(run);
  };

  get pending(): number {
    return this.#work.length;
  }

  /** Until nothing is left, with what comes of it. */
  runAll(): void {
    for (let limit = 10_000; this.#work.length > 0; limit--) {
      if (limit === 0) throw new Error("deferred work never ends");
      const work = this.#work;
      this.#work = [];
      for (const run of work) run();
    }
  }
}
