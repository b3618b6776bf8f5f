import { createHash, timingSafeEqual } from "node:crypto";
import { CoordinatorError } from "../errors.ts";
import type { Caller } from "../rpc/caller.ts";
import type { ApiTokenEntry } from "../state/entries.ts";
import type { Clock } from "../time/clock.ts";
import type { StoredSession, StoredSessions } from "./stored-browsers.ts";

export interface SessionsOptions {
  readonly findToken: (id: string) => ApiTokenEntry | undefined;
  /** Calls `lapse` once when the token ends. Returns a function that stops watching. */
  readonly watchToken: (id: string, lapse: () => void) => () => void;
  readonly clock: Clock;
  readonly randomBytes: (count: number) => Uint8Array;
  /** The stored sessions. Default: sessions end with the process. */
  readonly stored?: Pick<StoredSessions, "drain" | "put" | "delete"> | undefined;
}

/**
 * The session of a logged-in browser. It has the token's current permissions, and does not hold the
 * token itself.
 */
export interface DashboardSession {
  readonly tokenId: string;
  /** The hex digest of the session's id. */
  readonly key: string;
  /**
   * Aborts when the session ends: at a log-out, with its token, after its idle time or lifetime, or
   * when a newer session replaces it.
   */
  readonly signal: AbortSignal;
}

interface Kept extends DashboardSession {
  readonly digest: Buffer;
  readonly ending: AbortController;
  /** Functions that cancel the timers and listeners that would end the session. */
  readonly waiting: (() => void)[];
  usedMs: number;
}

/** The most sessions, about 1 KB each. Fewer people use one coordinator at the same time. */
export const MAX_SESSIONS = 256;
/**
 * The most sessions of one token. When it logs in once more, its own oldest session ends, not
 * another token's.
 */
export const MAX_SESSIONS_OF_TOKEN = 32;
/**
 * The idle time after which a session ends: a working day. Only requests of the page count as use,
 * not open streams or pod ports.
 */
const IDLE_MS = 8 * 3_600_000;
/** The longest lifetime of a session. */
const MAX_AGE_MS = 24 * 3_600_000;
const ID_BYTES = 32;

/**
 * Holds the sessions of browsers. Stored sessions survive a restart of this coordinator. A session
 * refers to its token by id, and ends with the token.
 */
export class DashboardSessions {
  readonly #options: SessionsOptions;
  /** Sessions by the hex digest of the id, oldest first. The ids themselves are not kept. */
  readonly #sessions = new Map<string, Kept>();

  constructor(options: SessionsOptions) {
    this.#options = options;
    for (const [key, session] of options.stored?.drain() ?? []) this.#adopt(key, session);
  }

  get size(): number {
    return this.#sessions.size;
  }

  /**
   * Starts a session and returns its id. Throws RESOURCE_EXHAUSTED if sessions of other tokens use
   * all slots.
   */
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
    const { clock, randomBytes, stored } = this.#options;
    const id = Buffer.from(randomBytes(ID_BYTES)).toString("base64url");
    const key = digestOf(id).toString("hex");
    this.#keep(key, tokenId, MAX_AGE_MS);
    stored?.put(key, { tokenId, startedAtMs: clock.nowMs() });
    return id;
  }

  /**
   * Restores a session that another coordinator started, or this one before its restart. It counts
   * as used now.
   */
  #adopt(key: string, { tokenId, startedAtMs }: StoredSession): void {
    const ageMs = Math.max(0, this.#options.clock.nowMs() - startedAtMs);
    if (ageMs < MAX_AGE_MS && this.#sessions.size < MAX_SESSIONS)
      this.#keep(key, tokenId, MAX_AGE_MS - ageMs);
    else this.#options.stored?.delete(key);
  }

  #keep(key: string, tokenId: string, lastsMs: number): void {
    const { clock, watchToken } = this.#options;
    const ending = new AbortController();
    const session: Kept = {
      ...{ tokenId, key, ending, signal: ending.signal },
      digest: Buffer.from(key, "hex"),
      usedMs: clock.monotonicMs(),
      waiting: [],
    };
    this.#sessions.set(key, session);
    const end = (): void => this.#end(key);
    session.waiting.push(clock.schedule(lastsMs, end));
    session.waiting.push(watchToken(tokenId, end));
    session.waiting.push(this.#awaitIdle(session, end));
  }

  /**
   * Returns the session, and its caller with the current permissions of the token; undefined if the
   * session has ended. Counts as use.
   */
  find(id: string): { readonly session: DashboardSession; readonly caller: Caller } | undefined {
    const digest = digestOf(id);
    const key = digest.toString("hex");
    const session = this.#sessions.get(key);
    if (session === undefined || !timingSafeEqual(session.digest, digest)) return undefined;
    const caller = this.callerOf(session);
    // The timer that ends the session may be late.
    if (caller === undefined || this.#leftMs(session) <= 0) {
      this.#end(key);
      return undefined;
    }
    session.usedMs = this.#options.clock.monotonicMs();
    return { session, caller };
  }

  /** Returns the session with the key. Does not count as use. */
  byKey(key: string): DashboardSession | undefined {
    return this.#sessions.get(key);
  }

  /**
   * Returns the caller of the session with the current permissions of the token; undefined if the
   * session has ended. Does not count as use.
   */
  callerOf({ tokenId, signal }: DashboardSession): Caller | undefined {
    const { clock, findToken } = this.#options;
    const { record } = findToken(tokenId) ?? {};
    const expired = record?.expiresAtMs !== undefined && clock.nowMs() >= record.expiresAtMs;
    if (signal.aborted || record === undefined || expired) return undefined;
    return { type: "user", name: `token:${tokenId}`, grants: record.grants, tokenId };
  }

  end(id: string): void {
    this.#end(digestOf(id).toString("hex"));
  }

  /** Ends the sessions of this process. Stored sessions continue at the next coordinator. */
  close(): void {
    for (const session of this.#sessions.values()) letGo(session);
    this.#sessions.clear();
  }

  #end(key: string): void {
    const session = this.#sessions.get(key);
    if (session === undefined) return;
    this.#sessions.delete(key);
    letGo(session);
    this.#options.stored?.delete(key);
  }

  /**
   * Calls `run` once when the session has been idle for too long. Returns a function that stops
   * waiting.
   */
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

  /** Returns the remaining time in milliseconds until an unused session ends. */
  #leftMs({ usedMs }: Kept): number {
    return usedMs + IDLE_MS - this.#options.clock.monotonicMs();
  }
}

function letGo({ waiting, ending }: Kept): void {
  for (const cancel of waiting) cancel();
  ending.abort();
}

function digestOf(id: string): Buffer {
  return createHash("sha256").update(id).digest();
}
