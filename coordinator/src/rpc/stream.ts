import type { ServerDuplexStream, ServerReadableStream } from "@grpc/grpc-js";

/**
 * The number of requests read before the handler takes them. Beyond it, flow control stops the
 * client.
 */
const MAX_BUFFERED = 16;

type Call<T> = ServerDuplexStream<T, unknown> | ServerReadableStream<T, unknown>;

/**
 * Yields the stream of requests. Ends with the client's half-close, its cancellation or the signal.
 * Throws if `check` throws for a request. Only one `next` may be pending.
 */
export function requestsOf<T>(
  call: Call<T>,
  signal: AbortSignal,
  check: (request: T) => void = () => {},
): AsyncIterableIterator<T, undefined> {
  return new Requests(call, signal, check);
}

interface Reader<T> {
  readonly resolve: (result: IteratorResult<T, undefined>) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * An async generator would take a kilobyte more for each agent, whose stream waits nearly all the
 * time, and three more promises for each heartbeat.
 */
class Requests<T> implements AsyncIterableIterator<T, undefined> {
  readonly #call: Call<T>;
  readonly #signal: AbortSignal;
  readonly #check: (request: T) => void;
  readonly #buffered: T[] = [];
  #reader: Reader<T> | undefined;
  #isStarted = false;
  #isOver = false;
  readonly #end = (): void => {
    this.#isOver = true;
    this.#deliver();
  };

  constructor(call: Call<T>, signal: AbortSignal, check: (request: T) => void) {
    this.#call = call;
    this.#signal = signal;
    this.#check = check;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  next(): Promise<IteratorResult<T, undefined>> {
    this.#start();
    return new Promise((resolve, reject) => {
      this.#reader = { resolve, reject };
      this.#deliver();
    });
  }

  async return(): Promise<IteratorResult<T, undefined>> {
    this.#buffered.length = 0;
    this.#end();
    this.#signal.removeEventListener("abort", this.#end);
    return { value: undefined, done: true };
  }

  #start(): void {
    if (this.#isStarted) return;
    this.#isStarted = true;
    const call = this.#call;
    call.on("data", (request: T) => {
      this.#buffered.push(request);
      if (this.#buffered.length >= MAX_BUFFERED) call.pause();
      this.#deliver();
    });
    for (const event of ["end", "error", "close", "cancelled"]) call.on(event, this.#end);
    if (this.#signal.aborted) this.#isOver = true;
    else this.#signal.addEventListener("abort", this.#end, { once: true });
  }

  /** Gives the reader the next request or the end, if there is either. */
  #deliver(): void {
    const reader = this.#reader;
    if (reader === undefined) return;
    const request = this.#buffered.shift();
    if (request === undefined && !this.#isOver) {
      if (this.#call.isPaused()) this.#call.resume();
      return;
    }
    this.#reader = undefined;
    try {
      if (request !== undefined) {
        this.#check(request);
        reader.resolve({ value: request, done: false });
        return;
      }
      reader.resolve({ value: undefined, done: true });
    } catch (error) {
      reader.reject(error);
    }
    void this.return();
  }
}

/**
 * Waits until the client reads again, so that a slow client slows its producer and nothing
 * accumulates.
 */
export function drained(
  call: {
    once(event: string, listener: () => void): unknown;
    off(event: string, listener: () => void): unknown;
  },
  signal: AbortSignal,
): Promise<void> {
  return new Promise((resolve) => {
    const finish = (): void => {
      call.off("drain", finish);
      call.off("close", finish);
      signal.removeEventListener("abort", finish);
      resolve();
    };
    if (signal.aborted) return resolve();
    call.once("drain", finish);
    call.once("close", finish);
    signal.addEventListener("abort", finish, { once: true });
  });
}

/** Resolves when `send` calls back, or when the call has ended and the callback may never come. */
export function untilAccepted(send: (taken: () => void) => void, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const finish = (): void => {
      signal.removeEventListener("abort", finish);
      resolve();
    };
    if (signal.aborted) return resolve();
    signal.addEventListener("abort", finish, { once: true });
    send(finish);
  });
}
