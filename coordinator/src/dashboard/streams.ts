import { linkSignals } from "@forage/common/link-signals";
import { CoordinatorError } from "../errors.ts";
import { callerName } from "../rpc/caller.ts";
import { Shares } from "../rpc/shares.ts";
import type { TokenWatch } from "../rpc/token-watch.ts";
import type { IdentifiedSession } from "./guard.ts";

export interface StreamsOptions {
  /** Ends streams when the token of their caller ends. */
  readonly tokens: Pick<TokenWatch, "watch">;
  /** Aborts when the server stops. */
  readonly stopping: AbortSignal;
}

/** A stream in progress. */
export interface OpenStream {
  /** Aborts when the client, its session or its token ends, or when the server stops. */
  readonly signal: AbortSignal;
  /** Releases the slot. Repeated calls have no effect. */
  readonly end: () => void;
}

/**
 * The most open streams: a part of the connections that the port accepts, so that health and
 * metrics always get an answer.
 */
export const MAX_STREAMS = 128;
/** The most open streams of one token in all browsers. */
export const MAX_STREAMS_OF_CALLER = 48;
/**
 * The most open streams of one browser: several windows, each with its tables, a log and a
 * terminal.
 */
export const MAX_STREAMS_OF_SESSION = 24;

/** Limits the open streams of all pages, and ends them with their sessions and tokens. */
export class Streams {
  readonly #options: StreamsOptions;
  /** The number of open streams by the signal of the session. */
  readonly #open = new Map<AbortSignal, number>();
  readonly #places = new Shares({
    what: "open dashboard streams",
    total: MAX_STREAMS,
    ofUser: MAX_STREAMS_OF_CALLER,
  });

  constructor(options: StreamsOptions) {
    this.#options = options;
  }

  get open(): number {
    return this.#places.held;
  }

  /**
   * Acquires a slot for a stream. Throws RESOURCE_EXHAUSTED. `gone` aborts when the client
   * disconnects.
   */
  begin({ session, caller }: IdentifiedSession, gone: AbortSignal): OpenStream {
    const own = this.#open.get(session.signal) ?? 0;
    if (own >= MAX_STREAMS_OF_SESSION)
      throw new CoordinatorError(
        "RESOURCE_EXHAUSTED",
        `this browser has ${own} streams open: close some of its windows of the dashboard`,
      );
    const release = this.#places.acquire(callerName(caller));
    this.#open.set(session.signal, own + 1);
    const ended = new AbortController();
    const { signal } = linkSignals(ended.signal, gone, session.signal, this.#options.stopping);
    const end = (): void => {
      if (ended.signal.aborted) return;
      unwatch();
      ended.abort();
      release();
      const left = (this.#open.get(session.signal) ?? 1) - 1;
      if (left === 0) this.#open.delete(session.signal);
      else this.#open.set(session.signal, left);
    };
    const unwatch = this.#options.tokens.watch(caller, end);
    return { signal, end };
  }
}
