import { createHash, timingSafeEqual } from "node:crypto";
import { CoordinatorError } from "../errors.ts";
import type { Caller } from "../rpc/caller.ts";
import type { ApiTokenEntry } from "../state/entries.ts";
import type { Clock } from "../time/clock.ts";
import type { StoredSession, StoredSessions } from "./stored-sessions.ts";

export interface SessionsOptions {
  readonly findToken: (id: string) => ApiTokenEntry | undefined;
  /** Calls once when the token ends. Returns how to stop watching. */
  readonly watchToken: (id: string, lapse: () => void) => () => void;
  readonly clock: Clock;
  readonly randomBytes: (count: number) => Uint8Array;
  /** Default: the sessions end with the process. */
  readonly stored?: Pick<StoredSessions, "take" | "put" | "delete"> | undefined;
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
 * Holds the sessions of browsers. They outlast this coordinator if they are stored. A session refers to its token by id, and ends with
 * it.
 */
export class DashboardSessions {
  readonly #options: SessionsOptions;
  /** Keyed by the hex digest of the id, oldest first: the ids themselves are not kept. */
  readonly #sessions = new Map<string, Kept>();

  constructor(options: SessionsOptions) {
    this.#options = options;
    for (const session of options.stored?.take() ?? []) this.#adopt(session);
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
    const { clock, randomBytes, stored } = this.#options;
    const id = Buffer.from(randomBytes(ID_BYTES)).toString("base64url");
    const digest = digestOf(id).toString("hex");
    this.#keep({ digest, tokenId }, MAX_AGE_MS);
    stored?.put({ digest, tokenId, startedAtMs: clock.nowMs() });
    return id;
  }

  /** Goes on with a session that another coordinator has started, or this one before its restart. It counts as used just now. */
  #adopt(session: StoredSession): void {
    const ageMs = Math.max(0, this.#options.clock.nowMs() - session.startedAtMs);
    if (ageMs < MAX_AGE_MS && this.#sessions.size < MAX_SESSIONS) this.#keep(session, MAX_AGE_MS - ageMs);
    else this.#options.stored?.delete(session.digest);
  }

  #keep({ digest, tokenId }: Omit<StoredSession, "startedAtMs">, lastsMs: number): void {
    const { clock, watchToken } = this.#options;
    const ending = new AbortController();
    const session: Kept = {
      ...{ tokenId, ending, signal: ending.signal },
      digest: Buffer.from(digest, "hex"),
      usedMs: clock.monotonicMs(),
      waiting: [],
    };
    this.#sessions.set(digest, session);
    const end = (): void => this.#end(digest);
    session.waiting.push(clock.schedule(lastsMs, end));
    session.waiting.push(watchToken(tokenId, end));
    session.waiting.push(this.#awaitIdle(session, end));
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

  /** Ends the sessions here. Those that are stored go on at the next coordinator. */
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

function letGo({ waiting, ending }: Kept): void {
  for (const cancel of waiting) cancel();
  ending.abort();
}

function digestOf(id: string): Buffer {
  return createHash("sha256").update(id).digest();
}
