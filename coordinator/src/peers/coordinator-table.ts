import { pause } from "@forage/common/clock";
import type { ReportRequest, ReportResponse } from "@forage/proto/forage/coordinator/v1/coordinator";
import type * as wire from "@forage/proto/forage/operator/v1/operator";
import { CoordinatorError } from "../errors.ts";
import { toTimestamp } from "../model/timestamp.ts";
import type { Caller } from "../rpc/caller.ts";
import type { Store } from "../store/index.ts";
import type { Clock } from "../time/clock.ts";

/** This coordinator, which is the leader. */
export interface OwnPlace {
  /** The host name. */
  readonly name: string;
  /** The addresses (HOST:PORT) at which others reach this coordinator, the preferred one first. */
  readonly addresses: readonly string[];
}

export interface CoordinatorTableOptions {
  readonly own: OwnPlace;
  readonly store: Pick<Store, "revision" | "health">;
  readonly clock: Pick<Clock, "nowMs" | "monotonicMs" | "schedule">;
  /** The time since which the coordinator leads, by the wall clock. Default: now. */
  readonly sinceMs?: number | undefined;
  readonly decides: () => boolean;
  /** Called with the ids of tokens that were used at other coordinators. Default: ignores them. */
  readonly onTokenUsed?: (id: string) => void;
}

interface Follower {
  readonly report: ReportRequest;
  readonly revisionsBehind: number;
  readonly reportedMs: number;
  /** The wall-clock time of the last report. */
  readonly seenAtMs: number;
}

/** The time without a report after which a follower is not ready. Followers report every 2 s. */
const SILENT_MS = 10_000;
/**
 * The time without a read of the store after which a follower is not ready. Followers read it every
 * second.
 */
const BEHIND_MS = 5_000;
/**
 * The clock difference that is reported. A report takes far less time. Certificates and tokens
 * tolerate more, but the events of both coordinators would be out of order.
 */
const CLOCK_OFF_MS = 30_000;
/** The time for which a removed coordinator is still listed. */
const FORGET_MS = 3_600_000;
/**
 * The time for which agents still receive the address of a coordinator that is away. An upgrade and
 * a reboot of its host take less.
 */
const KEEP_MS = 600_000;
/** The most addresses of coordinators that an agent keeps, the same as the agent's own limit. */
const AGENT_ADDRESSES_MAX = 16;
/** The most coordinators in an agent's configuration. */
const CONFIGURED_MAX = 9;
/** The most followers. Three coordinators are usual, and etcd has at most nine members. */
const MAX_FOLLOWERS = 16;
const MAX_ADDRESSES = 32;
const MAX_TEXT_LENGTH = 300;
const MAX_TOKENS = 10_000;
/** The most authorities in a report: one, and its replacement. */
const MAX_PINS = 8;
/** The time to wait for trust, in which each follower reports several times. */
const TRUST_WAIT_MS = 10_000;
const TRUST_CHECK_MS = 100;

/** The coordinators of the cluster, as known to the leader by their reports. */
export class CoordinatorTable {
  readonly #options: CoordinatorTableOptions;
  readonly #sinceMs: number;
  readonly #beganMs: number;
  readonly #listeners = new Set<() => void>();
  #notifiedAddresses = "";
  /** The followers by id. */
  readonly #followers = new Map<string, Follower>();

  constructor(options: CoordinatorTableOptions) {
    this.#options = options;
    this.#sinceMs = options.sinceMs ?? options.clock.nowMs();
    this.#beganMs = options.clock.monotonicMs();
  }

  /** Handles the report of a follower. Throws PERMISSION_DENIED for other callers, and INVALID. */
  report(report: ReportRequest, caller: Caller): ReportResponse {
    if (caller.type !== "anonymous" || caller.coordinator === undefined)
      throw new CoordinatorError("PERMISSION_DENIED", "only coordinators can report");
    checkReport(report);
    const { store, clock, decides, onTokenUsed } = this.#options;
    const id = caller.coordinator;
    for (const token of report.usedTokenIds) onTokenUsed?.(token);
    const revisionsBehind = Math.max(0, store.revision - Number(report.revision));
    this.#followers.delete(id);
    this.#followers.set(id, {
      ...{ report, revisionsBehind },
      ...{ reportedMs: clock.monotonicMs(), seenAtMs: clock.nowMs() },
    });
    this.#forget();
    this.#notify();
    return { decides: decides() };
  }

  /** Returns the leader, followed by the followers sorted by name and address. */
  list(): readonly wire.Coordinator[] {
    this.#forget();
    const followers = [...this.#followers.values()].map((it) => this.#followerView(it));
    followers.sort((a, b) => compare(placeOf(a), placeOf(b)));
    return [this.#ownView(), ...followers];
  }

  /**
   * Returns the addresses of the reporting coordinators, the preferred one of each first. Undefined
   * if there are no others, or until all have had time to report, because agents would drop
   * coordinators that are missing.
   */
  addresses(): readonly string[] | undefined {
    const { clock, own } = this.#options;
    const present = this.#present();
    if (clock.monotonicMs() - this.#beganMs < SILENT_MS || present.length === 0) return undefined;
    const lists = [own.addresses, ...present.map(({ report }) => report.addresses)];
    const preferred = lists.flatMap(([first]) => first ?? []);
    return [...new Set([...preferred, ...lists.flat()])].slice(0, AGENT_ADDRESSES_MAX);
  }

  /**
   * Returns the preferred address of each coordinator, the leader's first, for the configuration of
   * a new host. Empty if there are no others. Coordinators that have not reported yet may be
   * missing; agents receive them later.
   */
  preferred(): readonly string[] {
    const present = this.#present();
    if (present.length === 0) return [];
    const lists = [this.#options.own.addresses, ...present.map(({ report }) => report.addresses)];
    return [...new Set(lists.flatMap(([first]) => first ?? []))].slice(0, CONFIGURED_MAX);
  }

  /** Calls the function when `addresses` changes. Returns a function that ends this. */
  onAddresses(run: () => void): () => void {
    this.#listeners.add(run);
    return () => this.#listeners.delete(run);
  }

  /**
   * Waits until all reporting coordinators accept certificates of these authorities. A silent one
   * reads them from the store before it serves. @throws CoordinatorError FAILED_PRECONDITION with
   * the names of those that do not accept them in time.
   */
  async untilTrusted(pins: readonly string[]): Promise<void> {
    const { clock } = this.#options;
    const untilMs = clock.monotonicMs() + TRUST_WAIT_MS;
    for (;;) {
      const missing = [...this.#followers.values()].filter(
        ({ report, reportedMs }) =>
          clock.monotonicMs() - reportedMs <= SILENT_MS &&
          pins.some((pin) => !report.authorityPins.includes(pin)),
      );
      if (missing.length === 0) return;
      if (clock.monotonicMs() >= untilMs)
        throw new CoordinatorError(
          "FAILED_PRECONDITION",
          `coordinators do not trust the new authority yet: ${missing.map(({ report }) => report.name).join(", ")}; run \`forage ca roll\` again when \`forage get coordinators\` shows all of them as ready and of the same version`,
        );
      await pause(clock, TRUST_CHECK_MS, new AbortController().signal);
    }
  }

  /**
   * Returns the present followers in a stable order, because reports move coordinators to the end
   * of the map.
   */
  #present(): readonly Follower[] {
    const nowMs = this.#options.clock.monotonicMs();
    return [...this.#followers]
      .filter(([, { reportedMs }]) => nowMs - reportedMs <= KEEP_MS)
      .sort(([a], [b]) => compare(a, b))
      .map(([, follower]) => follower);
  }

  #notify(): void {
    const now = this.addresses()?.toSorted().join() ?? "";
    if (now === this.#notifiedAddresses) return;
    this.#notifiedAddresses = now;
    for (const run of this.#listeners) run();
  }

  #ownView(): wire.Coordinator {
    const { own, store } = this.#options;
    const health = store.health();
    const message = health.status === "ok" ? "" : health.status === "closed" ? "it stops" : health.message;
    return {
      ...{ name: own.name, addresses: [...own.addresses], leads: true, ready: message === "", message },
      leadsSince: toTimestamp(this.#sinceMs),
      ...{ behindMs: 0n, revisionsBehind: 0n, lastSeenAt: undefined },
    };
  }

  #followerView({ report, revisionsBehind, reportedMs, seenAtMs }: Follower): wire.Coordinator {
    const { clock } = this.#options;
    const { name, addresses, behindMs } = report;
    const silentMs = Math.max(0, clock.monotonicMs() - reportedMs);
    const problem = problemOf(silentMs, Number(behindMs));
    const message = problem || clockRemark(report, seenAtMs);
    return {
      ...{ name, addresses, leads: false, ready: problem === "", message },
      ...{ leadsSince: undefined, behindMs, revisionsBehind: BigInt(revisionsBehind) },
      lastSeenAt: toTimestamp(seenAtMs),
    };
  }

  /**
   * Removes silent coordinators. Reports move a coordinator to the end, so the first ones have been
   * silent for the longest time.
   */
  #forget(): void {
    const { clock } = this.#options;
    for (const [id, { reportedMs }] of this.#followers) {
      const isOld = clock.monotonicMs() - reportedMs > FORGET_MS;
      if (!isOld && this.#followers.size <= MAX_FOLLOWERS) return;
      this.#followers.delete(id);
    }
  }
}

function problemOf(silentMs: number, behindMs: number): string {
  if (silentMs > SILENT_MS) return `it has not reported for ${Math.round(silentMs / 1000)} s`;
  if (behindMs > BEHIND_MS)
    return `it has not read the store for ${Math.round(behindMs / 1000)} s: etcd does not answer it`;
  return "";
}

/**
 * Describes the difference of the follower's clock; empty if it is small. The follower works
 * nevertheless.
 */
function clockRemark({ clockMs }: ReportRequest, seenAtMs: number): string {
  const offMs = Number(clockMs) - seenAtMs;
  if (clockMs === 0n || Math.abs(offMs) < CLOCK_OFF_MS) return "";
  const seconds = Math.round(Math.abs(offMs) / 1000);
  return `its clock is ${seconds} s ${offMs > 0 ? "ahead of" : "behind"} the leader's: set the clocks of both hosts`;
}

function checkReport({ name, addresses, usedTokenIds, authorityPins }: ReportRequest): void {
  const invalid = (field: string, description: string): CoordinatorError =>
    new CoordinatorError("INVALID", `${field}: ${description}`, { violations: [{ field, description }] });
  if (name === "" || name.length > MAX_TEXT_LENGTH)
    throw invalid("name", `must have 1 to ${MAX_TEXT_LENGTH} characters`);
  if (addresses.length > MAX_ADDRESSES || addresses.some(({ length }) => length > MAX_TEXT_LENGTH))
    throw invalid("addresses", `must be at most ${MAX_ADDRESSES} of ${MAX_TEXT_LENGTH} characters`);
  if (usedTokenIds.length > MAX_TOKENS || usedTokenIds.some(({ length }) => length > MAX_TEXT_LENGTH))
    throw invalid("used_token_ids", `must be at most ${MAX_TOKENS} of ${MAX_TEXT_LENGTH} characters`);
  if (authorityPins.length > MAX_PINS || authorityPins.some(({ length }) => length > MAX_TEXT_LENGTH))
    throw invalid("authority_pins", `must be at most ${MAX_PINS} of ${MAX_TEXT_LENGTH} characters`);
}

function placeOf({ name, addresses }: wire.Coordinator): string {
  return `${name} ${addresses.join()}`;
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
