import { backOffMs } from "@forage/common/back-off";
import { type ServiceError, status } from "@grpc/grpc-js";
import type { Clock } from "../clock.ts";
import type { KnownAnswer } from "./known-answer.ts";

/** The stream of a local proxy. */
export interface ReaderSink {
  /** Sends a message. Calls `onAccepted` once the transport has accepted it. */
  send(message: Buffer, onAccepted: () => void): void;
  fail(error: Pick<ServiceError, "code" | "details">): void;
}

/** A stream from the coordinator. */
export interface UpstreamEvents {
  message(bytes: Buffer): void;
  /** Called when the stream has ended; `error` is undefined if it ended without one. */
  ended(error: Pick<ServiceError, "code" | "details"> | undefined): void;
}

export interface LookupOptions<S> {
  readonly answer: KnownAnswer<S>;
  /** The message to send if no state arrives for a while. Undefined: none. */
  readonly instead: S | undefined;
  /** Opens a stream and returns a function that cancels it. Reports no event before it has returned. */
  readonly open: (events: UpstreamEvents) => () => void;
  readonly clock: Clock;
  /** A source of random numbers in [0, 1). */
  readonly random: () => number;
  /** Called when the coordinator rejects the look-up for good, or when it has had no readers for a while. */
  readonly over: () => void;
}

const RETRY_BASE_MS = 250;
/** The same cap as for the agent's link, because a whole fleet must not reconnect at the same moment. */
const RETRY_CAP_MS = 10_000;
/** Proxies stop waiting for a first message after 3 s. */
const INSTEAD_AFTER_MS = 1_500;
/** Keeps the state for a proxy that restarts or reopens its stream. */
const LINGER_MS = 60_000;

/** Status codes that a retry does not change. */
const FINAL: ReadonlySet<number> = new Set([
  status.INVALID_ARGUMENT,
  status.FAILED_PRECONDITION,
  status.PERMISSION_DENIED,
]);

/**
 * One distinct look-up, with one stream from the coordinator and any number of local readers that are sent its state.
 */
export class Lookup<S> {
  readonly #options: LookupOptions<S>;
  readonly #readers = new Set<Reader<S>>();
  #state: S | undefined;
  #cancelStream: (() => void) | undefined;
  #cancelRetry: (() => void) | undefined;
  #cancelInstead: (() => void) | undefined;
  #cancelLinger: (() => void) | undefined;
  #failures = 0;
  #closed = false;

  constructor(options: LookupOptions<S>) {
    this.#options = options;
    this.#open();
    if (options.instead !== undefined)
      this.#cancelInstead = options.clock.schedule(INSTEAD_AFTER_MS, () => {
        this.#state ??= options.instead;
        this.#wake();
      });
  }

  get readers(): number {
    return this.#readers.size;
  }

  /** Sends the last known state at once if there is one, then each newer state. Returns a function that stops it. */
  read(sink: ReaderSink): () => void {
    const reader = new Reader<S>(this.#options.answer, () => this.#state, sink);
    this.#readers.add(reader);
    this.#cancelLinger?.();
    this.#cancelLinger = undefined;
    reader.advance();
    return () => {
      reader.close();
      if (!this.#readers.delete(reader) || this.#readers.size > 0 || this.#closed) return;
      this.#cancelLinger = this.#options.clock.schedule(LINGER_MS, () => this.#end());
    };
  }

  close(): void {
    this.#closed = true;
    this.#cancelStream?.();
    for (const cancel of [this.#cancelRetry, this.#cancelInstead, this.#cancelLinger]) cancel?.();
  }

  #open(): void {
    let isFirst = true;
    let isOver = false;
    this.#cancelStream = this.#options.open({
      message: (bytes) => {
        if (isOver || this.#closed) return;
        this.#state = this.#options.answer.next(this.#state, bytes, isFirst);
        isFirst = false;
        this.#failures = 0;
        this.#wake();
      },
      ended: (error) => {
        if (isOver || this.#closed) return;
        isOver = true;
        this.#cancelStream = undefined;
        if (error !== undefined && FINAL.has(error.code)) this.#refuse(error);
        else this.#retry();
      },
    });
  }

  /** Schedules another attempt. Until then readers keep their state, and new ones get the last known state. */
  #retry(): void {
    const { clock, random } = this.#options;
    const delayMs = backOffMs(this.#failures + 1, { baseMs: RETRY_BASE_MS, capMs: RETRY_CAP_MS });
    this.#failures += 1;
    this.#cancelRetry = clock.schedule(delayMs * (0.5 + random() / 2), () => this.#open());
  }

  #refuse(error: Pick<ServiceError, "code" | "details">): void {
    for (const reader of [...this.#readers]) reader.fail(error);
    this.#end();
  }

  #end(): void {
    this.close();
    this.#options.over();
  }

  #wake(): void {
    for (const reader of this.#readers) reader.advance();
  }
}

/**
 * A reader of the state. When a stalled proxy continues to read, it is sent one step to the newest state, so that no
 * messages accumulate.
 */
class Reader<S> {
  readonly #answer: KnownAnswer<S>;
  readonly #stateNow: () => S | undefined;
  readonly #sink: ReaderSink;
  #sent: S | undefined;
  #left: readonly Buffer[] = [];
  #sending = false;
  #closed = false;

  constructor(answer: KnownAnswer<S>, stateNow: () => S | undefined, sink: ReaderSink) {
    this.#answer = answer;
    this.#stateNow = stateNow;
    this.#sink = sink;
  }

  advance(): void {
    if (this.#sending || this.#closed) return;
    if (this.#left.length === 0) {
      const now = this.#stateNow();
      if (now === undefined || now === this.#sent) return;
      this.#left = this.#answer.between(this.#sent, now);
      this.#sent = now;
    }
    const [message] = this.#left;
    if (message === undefined) return;
    this.#left = this.#left.slice(1);
    this.#sending = true;
    this.#sink.send(message, () => {
      this.#sending = false;
      this.advance();
    });
  }

  fail(error: Pick<ServiceError, "code" | "details">): void {
    if (!this.#closed) this.#sink.fail(error);
  }

  close(): void {
    this.#closed = true;
  }
}
