import type { Log } from "@forage/common/log";
import { decodeJsonRecord, encodeJsonRecord } from "../model/codec.ts";
import { dashboardSessionKey, PREFIXES } from "../model/keys.ts";
import type { Store } from "../store/index.ts";

/** A session as it is stored: once when it starts, until it ends. Its use is not stored. */
export interface StoredSession {
  /** The hex digest of the session's id. The id itself is not stored. */
  readonly digest: string;
  readonly tokenId: string;
  /** By the wall clock of the coordinator that it started at. */
  readonly startedAtMs: number;
}

export interface StoredSessionsOptions {
  readonly store: Pick<Store, "range" | "txn">;
  readonly log: Pick<Log, "warn">;
}

type SessionRecord = Omit<StoredSession, "digest">;

/** More than any coordinator keeps, see MAX_SESSIONS. */
const MAX_READ = 1_000;

/** Stores the sessions of browsers, so that they outlast a coordinator. */
export class StoredSessions {
  readonly #options: StoredSessionsOptions;
  #writes: Promise<void> = Promise.resolve();
  readonly #known: StoredSession[];

  /** A store that can't be read costs people a log-in, and not the coordinator's start. */
  static async open(options: StoredSessionsOptions): Promise<StoredSessions> {
    const { store, log } = options;
    const prefix = PREFIXES.dashboardSessions;
    try {
      const { records } = await store.range(prefix, { limit: MAX_READ });
      const known = records.map(({ key, value }) => {
        return { ...decodeJsonRecord<SessionRecord>(key, value), digest: key.slice(prefix.length) };
      });
      return new StoredSessions(options, known);
    } catch (err) {
      log.warn({ event: "dashboard-sessions-not-read", err });
      return new StoredSessions(options, []);
    }
  }

  private constructor(options: StoredSessionsOptions, known: readonly StoredSession[]) {
    this.#options = options;
    this.#known = [...known];
  }

  /** Returns the sessions that were stored at the start. The second call returns none. */
  take(): readonly StoredSession[] {
    return this.#known.splice(0);
  }

  put({ digest, tokenId, startedAtMs }: StoredSession): void {
    const record: SessionRecord = { tokenId, startedAtMs };
    this.#write({ kind: "put", key: dashboardSessionKey(digest), value: encodeJsonRecord(record) });
  }

  delete(digest: string): void {
    this.#write({ kind: "delete", key: dashboardSessionKey(digest) });
  }

  /** Resolves when the changes up to now are stored, or have failed. */
  settled(): Promise<void> {
    return this.#writes;
  }

  /** Writes one after the other: the end of a session follows its start. A session that can't be stored ends with this coordinator. */
  #write(op: Parameters<Store["txn"]>[1][number]): void {
    const { store, log } = this.#options;
    this.#writes = this.#writes
      .then(async () => void (await store.txn([], [op])))
      .catch((err: unknown) => log.warn({ event: "dashboard-session-not-stored", err }));
  }
}
