import type { Sink } from "../../src/rpc/push.ts";

/** A transport that accepts a message only when the test releases it. */
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

  /** Accepts one message. Reports whether there was one. */
  accept(): boolean {
    const taken = this.#taken;
    this.#taken = undefined;
    taken?.();
    return taken !== undefined;
  }

  /** Accepts messages until none is pending. */
  takeAll(): void {
    while (this.accept());
  }
}

/** Runs deferred work when a test requests it. */
export class Deferred {
  #work: (() => void)[] = [];

  readonly defer = (run: () => void): void => {
    this.#work.push(run);
  };

  get pending(): number {
    return this.#work.length;
  }

  /** Runs deferred work, including the work that it defers, until none is left. */
  runAll(): void {
    for (let limit = 10_000; this.#work.length > 0; limit--) {
      if (limit === 0) throw new Error("deferred work never ends");
      const work = this.#work;
      this.#work = [];
      for (const run of work) run();
    }
  }
}
