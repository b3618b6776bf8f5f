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

/**
 * Calls `run` for each request until the stream ends. Throws as the iteration does, and what `run`
 * throws. An iteration allocates several promises for each request. With thousands of idle agents, they
 * live so long that only full collections remove them.
 */
export function forEachRequest<T>(
  requests: AsyncIterator<T, undefined>,
  run: (request: T) => void,
): Promise<void> {
  return requests instanceof Requests ? requests.forEach(run) : iterate(requests, run);
}

async function iterate<T>(requests: AsyncIterator<T, undefined>, run: (request: T) => void): Promise<void> {
  for (let next = await requests.next(); !next.done; next = await requests.next()) run(next.value);
}

interface Reader<T> {
  readonly resolve: (result: IteratorResult<T, undefined>) => void;
  readonly reject: (error: unknown) => void;
  /** Called for each request until the end. Default: `resolve` is called with the next one. */
  readonly run?: (request: T) => void;
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

  forEach(run: (request: T) => void): Promise<void> {
    this.#start();
    return new Promise((resolve, reject) => {
      this.#reader = { resolve: () => resolve(), reject, run };
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

  /** Gives the reader the requests that it accepts, or the end, if there are any. */
  #deliver(): void {
    while (this.#reader !== undefined) {
      const reader = this.#reader;
      const request = this.#buffered.shift();
      if (request === undefined && !this.#isOver) {
        if (this.#call.isPaused()) this.#call.resume();
        return;
      }
      if (request === undefined || reader.run === undefined) this.#reader = undefined;
      if (!this.#give(reader, request)) void this.return();
    }
  }

  /** Gives the reader a request; undefined is the end. Returns whether the stream continues. */
  #give(reader: Reader<T>, request: T | undefined): boolean {
    try {
      if (request === undefined) reader.resolve({ value: undefined, done: true });
      else {
        this.#check(request);
        if (reader.run === undefined) reader.resolve({ value: request, done: false });
        else reader.run(request);
      }
      return request !== undefined;
    } catch (error) {
      this.#reader = undefined;
      reader.reject(error);
      return false;
    }
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
export function untilAccepted(send: (onAccepted: () => void) => void, signal: AbortSignal): Promise<void> {
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
