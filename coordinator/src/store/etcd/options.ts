import type { MonotonicClock } from "@forage/common/clock";
import type { Log } from "@forage/common/log";
import type { Clock } from "../clock.ts";
import type { Etcd } from "./etcd.ts";
import type { Leader } from "./leadership.ts";

export interface EtcdStoreOptions {
  /** The access to the store's keys, see `prefixed`. Closed with the store, or when the opening fails. */
  readonly etcd: Etcd;
  /** This coordinator as described in the leader's record. */
  readonly self: Leader;
  /** The clock of the leases that the store grants. */
  readonly clock: Clock;
  /** The clock of calls to etcd. Default: `clock`. */
  readonly callClock?: MonotonicClock;
  /**
   * The wall clock in milliseconds, for the time since which this coordinator leads. Default: the leader's record has no
   * time.
   */
  readonly nowMs?: () => number;
  /** Returns a random number from 0 to 1, exclusive. */
  readonly random: () => number;
  /** Returns a random id: of the store, its lineage or this opening. */
  readonly newId: () => string;
  /** Called with the leader while another coordinator leads, perhaps several times. May throw to end the opening. */
  readonly onStandby?: (leader: Leader) => void;
  /**
   * Whether to create a store if there is none. "allow" creates one. "refuse" makes the opening fail with MISSING.
   * "require" makes it fail with NOT_EMPTY if there is a store. Default: "allow".
   */
  readonly create?: "allow" | "refuse" | "require";
  /** Called once, when the store is closed or the opening has failed. */
  readonly onClosed?: () => void;
  readonly log?: Log["info"];
  /** The number of revisions of history to keep. Default: HISTORY_REVISIONS. */
  readonly historyRevisions?: number;
  /** The time that a revision is kept. Default: no limit, because a follower may have been cut off for longer. */
  readonly historyAgeMs?: number;
  /** The time for which writes wait for etcd before they fail. Default: WRITE_WAIT_MS. */
  readonly writeWaitMs?: number;
  /** Cancels the opening. */
  readonly signal?: AbortSignal;
}
