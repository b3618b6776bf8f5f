import type { MonotonicClock } from "@forage/common/clock";
import type { Log } from "@forage/common/log";
import type { Clock } from "../clock.ts";
import type { Etcd } from "./etcd.ts";
import type { Leader } from "./leadership.ts";

export interface EtcdStoreOptions {
  /** The store's keys only, see `prefixed`. Closed with the store, and when the opening fails. */
  readonly etcd: Etcd;
  /** This coordinator, as others see it. */
  readonly self: Leader;
  /** The clock of leases on the store's own records. */
  readonly clock: Clock;
  /** The clock of calls to etcd. Default: `clock`. */
  readonly callClock?: MonotonicClock;
  /** Wall clock in milliseconds, for the time since which this coordinator leads. Default: others don't learn it. */
  readonly nowMs?: () => number;
  /** A number from 0 up to, but not including, 1. */
  readonly random: () => number;
  /** Makes random ids: of the store, its lineage and this opening. */
  readonly newId: () => string;
  /** Called, perhaps several times, while another coordinator leads. It may throw to end the opening. */
  readonly onStandby?: (leader: Leader) => void;
  /**
   * Whether a store is made where there is none. "refuse": the opening fails with MISSING. "require": it fails with NOT_EMPTY
   * where there is one. "allow" by default.
   */
  readonly create?: "allow" | "refuse" | "require";
  /** Called once, when the store is closed or the opening has failed. */
  readonly onClosed?: () => void;
  readonly log?: Log["info"];
  /** Revisions of history to keep; HISTORY_REVISIONS by default. */
  readonly historyRevisions?: number;
  /** The time that writes wait for etcd before they fail; WRITE_WAIT_MS by default. */
  readonly writeWaitMs?: number;
  /** Cancels the opening. */
  readonly signal?: AbortSignal;
}
