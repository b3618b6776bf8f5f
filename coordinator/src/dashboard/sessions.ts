import { createHash, timingSafeEqual } from "node:crypto";
import { CoordinatorError } from "../errors.ts";
import type { Caller } from "../rpc/caller.ts";
import type { ApiTokenEntry } from "../state/entries.ts";
import type { Clock } from "../time/clock.ts";

export interface SessionsOptions {
  readonly findToken: (id: string) => ApiTokenEntry | undefined;
  /** Calls once when the token ends. Returns how to stop watching. */
  readonly watchToken: (id: string, lapse: () => void) => () => void;
  readonly clock: Clock;
  readonly randomBytes: (count: number) => Uint8Array;
}

/** A browser that has logged in. It acts with the token's present rights and holds no secret of the token. */
export interface DashboardSession {
  readonly tokenId: string;
  /** Aborts when the session ends: by a log-out, with its token, unused, by its age, or because another session took its place. */
  readonly signal: AbortSignal;
}

interface Kept extends DashboardSession {
  readonly digest: Buffer;
  readonly ending: AbortController;
  /** Cancel what would end the session. */
  readonly waiting: (() => void)[];
  usedMs: number;
}

/** About 1 KB each. Fewer people than that work with one coordinator at the same time. */
export const MAX_SESSIONS = 256;
/** A token that logs in more often ends its own oldest session, so that it can't end those of others. */
export const MAX_SESSIONS_OF_TOKEN = 32;
/** A working day. Requests of the page are use; open streams and ports of pods are not. */
const IDLE_MS = 8 * 3_600_000;
/** The longest life of a session. */
const MAX_AGE_MS = 24 * 3_600_000;
const ID_BYTES = 32;

/**
 * Holds the sessions of browsers, in memory only: a restart of the coordinator ends them. A session refers to its token by id, and
 * ends with it.
 */
export class DashboardSessions {
  readonly #options: SessionsOptions;
  /** Keyed by the hex digest of the id, oldest first: the ids themselves are not kept. */
  readonly #sessions = new Map<string, Kept>();

  constructor(options: SessionsOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#sessions.size;
  }

  /** Starts a session and returns its id. Throws RESOURCE_EXHAUSTED when all places are taken by other tokens. */
  start(tokenId: string): string {
    const own = [...this.#sessions].filter(([, session]) => session.tokenId === tokenId);
    const [oldest] = own;
    if (oldest !== undefined && (own.length >= MAX_SESSIONS_OF_TOKEN || this.#sessions.size >= MAX_SESSIONS))
      this.#end(oldest[0]);
    if (this.#sessions.size >= MAX_SESSIONS) {
      throw new CoordinatorError(
        "RESOURCE_EXHAUSTED",
        `${MAX_SESSIONS} browsers are logged in; log out in one of them, or try again later`,
      );
    }
    const { clock, randomBytes } = this.#options;
    const id = Buffer.from(randomBytes(ID_BYTES)).toString("base64url");
    const digest = digestOf(id);
    const key = digest.toString("hex");
    const ending = new AbortController();
    const session: Kept = {
      ...{ tokenId, digest, ending, signal: ending.signal },
      usedMs: clock.monotonicMs(),
      waiting: [],
    };
    this.#sessions.set(key, session);
    const end = (): void => this.#end(key);
    session.waiting.push(clock.schedule(MAX_AGE_MS, end));
    session.waiting.push(this.#options.watchToken(tokenId, end));
    session.waiting.push(this.#awaitIdle(session, end));
    return id;
  }

  /** Returns the session and its caller, with the rights that the token has now. Undefined: the session has ended. */
  find(id: string): { readonly session: DashboardSession; readonly caller: Caller } | undefined {
    const digest = digestOf(id);
    const key = digest.toString("hex");
    const session = this.#sessions.get(key);
    if (session === undefined || !timingSafeEqual(session.digest, digest)) return undefined;
    const caller = this.callerOf(session);
    // A timer may be late.
    if (caller === undefined || this.#leftMs(session) <= 0) {
      this.#end(key);
      return undefined;
    }
    session.usedMs = this.#options.clock.monotonicMs();
    return { session, caller };
  }

  /** Returns the caller of the session, with the rights that the token has now. Undefined: it has ended. It is no use of the session. */
  callerOf({ tokenId, signal }: DashboardSession): Caller | undefined {
    const { clock, findToken } = this.#options;
    const { record } = findToken(tokenId) ?? {};
    const expired = record?.expiresAtMs !== undefined && clock.nowMs() >= record.expiresAtMs;
    if (signal.aborted || record === undefined || expired) return undefined;
    return { kind: "user", name: `token:${tokenId}`, grants: record.grants, tokenId };
  }

  end(id: string): void {
    this.#end(digestOf(id).toString("hex"));
  }

  close(): void {
    for (const key of [...this.#sessions.keys()]) this.#end(key);
  }

  #end(key: string): void {
    const session = this.#sessions.get(key);
    if (session === undefined) return;
    this.#sessions.delete(key);
    for (const cancel of session.waiting) cancel();
    session.ending.abort();
  }

  /** Calls once when the session was not used for its time. Returns how to stop waiting. */
  #awaitIdle(session: Kept, run: () => void): () => void {
    let cancel = (): void => {};
    const wait = (): void => {
      const leftMs = this.#leftMs(session);
      if (leftMs <= 0) run();
      else cancel = this.#options.clock.schedule(leftMs, wait);
    };
    wait();
    return () => cancel();
  }

  /** The time after which the session ends if it is not used. */
  #leftMs({ usedMs }: Kept): number {
    return usedMs + IDLE_MS - this.#options.clock.monotonicMs();
  }
}

function digestOf(id: string): Buffer {
  return createHash("sha256").update(id).digest();
}
