import { PREFIXES } from "../model/keys.ts";
import { StoredRecords, type StoredRecordsOptions } from "./stored-records.ts";

/**
 * A session as stored under the hex digest of its id from its start to its end. Its use is not
 * stored.
 */
export interface StoredSession {
  readonly tokenId: string;
  /** The start by the wall clock of the coordinator at which the session started. */
  readonly startedAtMs: number;
}

/** An opened pod port as stored under its id, from its first use until it is closed. */
export interface StoredPort {
  /** The key of the session to which the port belongs. */
  readonly session: string;
  readonly namespace: string;
  readonly pod: string;
  readonly podUid: string;
  readonly port: number;
  /** The hex digest of the secret in the browser's cookie. */
  readonly secretDigest: string;
}

export type StoredSessions = StoredRecords<StoredSession>;
export type StoredPorts = StoredRecords<StoredPort>;

/** The state of browsers that survives a restart of the coordinator. */
export interface StoredBrowsers {
  readonly sessions: StoredSessions;
  readonly ports: StoredPorts;
}

export async function openStoredBrowsers(
  options: Omit<StoredRecordsOptions, "prefix">,
): Promise<StoredBrowsers> {
  return {
    sessions: await openStoredSessions(options),
    ports: await StoredRecords.open({ ...options, prefix: PREFIXES.openedPorts }),
  };
}

export function openStoredSessions(options: Omit<StoredRecordsOptions, "prefix">): Promise<StoredSessions> {
  return StoredRecords.open({ ...options, prefix: PREFIXES.dashboardSessions });
}
