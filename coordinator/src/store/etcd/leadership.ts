import { pause } from "@forage/common/clock";
import { linkSignals } from "@forage/common/link-signals";
import { StoreError } from "../store-error.ts";
import type { Etcd, EtcdRecord } from "./etcd.ts";
import { EtcdError } from "./etcd-error.ts";
import { type RetryTiming, retryUntilAnswered } from "./insist.ts";
import { HEAD_KEY, LEADER_KEY } from "./layout.ts";

/**
 * The time after which another coordinator may lead if the leader is gone. etcd's minimum is 2 s. An election of etcd
 * doesn't cost the lead, because etcd's new leader restarts all leases.
 */
export const LEADER_TTL_SECONDS = 3;

/**
 * The interval of renewals. After a failed one there is time for an attempt at each of the other members, see
 * LEASE_CALL_LIMIT_MS.
 */
const RENEW_EVERY_MS = 750;
const RENEW_AGAIN_MS = 100;

/**
 * The time for which a restarted coordinator leaves the lead to a follower, which has the current state and can decide at
 * once. A follower notices within milliseconds that there is no leader.
 */
const YIELD_MS = 500;

/** The interval at which the leader's key is read without a notification, because a watch can end without one. */
const LOOK_EVERY_MS = 1_000;

/** The coordinator that leads. */
export interface Leader {
  /** The leader's id, which stays the same over restarts. */
  readonly holder: string;
  /** The host's name, for messages. */
  readonly name: string;
  /** The addresses (HOST:PORT) at which the other coordinators reach the leader, the preferred one first. Default: none. */
  readonly addresses?: readonly string[] | undefined;
  /** The time since which it leads, by its wall clock. Default: unknown. */
  readonly sinceMs?: number | undefined;
}

export interface LeadershipOptions extends Omit<RetryTiming, "onRetry"> {
  readonly etcd: Etcd;
  readonly self: Leader;
  /** The wall clock in milliseconds. Default: the leader's record has no time. */
  readonly nowMs?: (() => number) | undefined;
}

/**
 * The right to write, represented by a key that is attached to a lease. The lease alone is no proof: a process that was
 * paused doesn't know that its lease has ended. Therefore every write compares the revision that created the key.
 */
export class Leadership {
  readonly #options: LeadershipOptions;
  /** This coordinator as described in the leader's record. */
  readonly self: Leader;
  readonly #ending = new AbortController();
  #lease: bigint;
  #createRevision: bigint;
  #ended = false;
  /** The time at which the last successful renewal was sent. */
  #confirmedMs: number;
  #onEnded: () => void = () => {};

  private constructor(
    options: LeadershipOptions,
    self: Leader,
    taken: { readonly lease: bigint; readonly createRevision: bigint; readonly confirmedMs: number },
  ) {
    this.#options = options;
    this.self = self;
    this.#lease = taken.lease;
    this.#createRevision = taken.createRevision;
    this.#confirmedMs = taken.confirmedMs;
    void this.#renew();
  }

  /**
   * Waits until no other coordinator leads. Doesn't wait for an earlier process of the same coordinator: the caller holds
   * the lock of its data directory, so that process has ended. Calls `onVacant` when there is no leader.
   */
  static async acquire(
    options: LeadershipOptions,
    onStandby: (leader: Leader) => void,
    onVacant: () => void = () => {},
  ): Promise<Leadership> {
    const { etcd, signal } = options;
    let lease: bigint | undefined;
    for (;;) {
      const found = await retryUntilAnswered(() => etcd.range({ from: LEADER_KEY }), options);
      const [record] = found.records;
      if (signal.aborted) throw new StoreError("CLOSED", "the opening was cancelled");
      if (record !== undefined) {
        const leader = decodeLeader(record);
        if (leader.holder === options.self.holder) {
          await retryUntilAnswered(() => etcd.txn(removal(record)), options);
          await pause(options.clock, YIELD_MS, signal);
        } else {
          onStandby(leader);
          await untilChanged(options, found.revision);
        }
        continue;
      }
      onVacant();
      lease ??= await retryUntilAnswered(() => etcd.grantLease(LEADER_TTL_SECONDS), options);
      const confirmedMs = options.clock.monotonicMs();
      if (!(await retryUntilAnswered(() => etcd.keepLeaseAlive(lease ?? 0n), options))) {
        lease = undefined;
        continue;
      }
      const self = { ...options.self, sinceMs: options.nowMs?.() };
      const value = encodeLeader(self, lease);
      const free = { type: "create-revision", key: LEADER_KEY, revision: 0n } as const;
      const put = { type: "put", key: LEADER_KEY, value, lease } as const;
      const granted = lease;
      const result = await retryUntilAnswered(() => etcd.txn({ compares: [free], ops: [put] }), options);
      if (result.succeeded)
        return new Leadership(options, self, {
          lease: granted,
          createRevision: result.revision,
          confirmedMs,
        });
    }
  }

  /** The fencing token, which every write compares. */
  get createRevision(): bigint {
    return this.#createRevision;
  }

  /** Whether the lease has ended, so that another coordinator may lead. */
  get ended(): boolean {
    return this.#ended;
  }

  /** Whether the lease certainly lasts, so that this coordinator alone leads and its state is current. */
  get isConfirmed(): boolean {
    const sinceMs = this.#options.clock.monotonicMs() - this.#confirmedMs;
    return !this.#ended && sinceMs < LEADER_TTL_SECONDS * 1_000;
  }

  onEnded(run: () => void): void {
    this.#onEnded = run;
  }

  /**
   * Takes the lead again after the lease has ended, unless another coordinator has led since and moved the head. @throws
   * StoreError LEAD_LOST if another one has.
   */
  async retake(headRevision: bigint): Promise<void> {
    const { etcd, clock } = this.#options;
    const confirmedMs = clock.monotonicMs();
    const lease = await retryUntilAnswered(() => etcd.grantLease(LEADER_TTL_SECONDS), this.#options);
    const value = encodeLeader(this.self, lease);
    const result = await retryUntilAnswered(
      () =>
        etcd.txn({
          compares: [
            { type: "create-revision", key: LEADER_KEY, revision: 0n },
            { type: "mod-revision", key: HEAD_KEY, revision: headRevision },
          ],
          ops: [{ type: "put", key: LEADER_KEY, value, lease }],
          otherwise: [LEADER_KEY, HEAD_KEY],
        }),
      this.#options,
    );
    const [leader, head] = result.found;
    // An attempt without a response may have written the record.
    const own = leader?.value.equals(value) === true && head?.modRevision === headRevision;
    if (!result.succeeded && !own) throw lost(leader);
    this.#lease = lease;
    this.#createRevision = result.succeeded ? result.revision : (leader?.createRevision ?? 0n);
    this.#confirmedMs = confirmedMs;
    this.#ended = false;
  }

  /** Ends the lease, so that another coordinator can lead at once. */
  async release(): Promise<void> {
    this.#ending.abort();
    // If the call fails, the lease expires.
    await this.#options.etcd.revokeLease(this.#lease).catch(() => {});
  }

  async #renew(): Promise<void> {
    const { etcd, clock, outage } = this.#options;
    const { signal } = this.#ending;
    let waitMs = RENEW_EVERY_MS;
    while (!signal.aborted) {
      await pause(clock, waitMs, signal);
      if (signal.aborted) return;
      waitMs = RENEW_EVERY_MS;
      const lease = this.#lease;
      const sentMs = clock.monotonicMs();
      try {
        const alive = await etcd.keepLeaseAlive(lease);
        outage.answered();
        if (alive && lease === this.#lease) this.#confirmedMs = sentMs;
        if (!alive && lease === this.#lease && !signal.aborted) {
          this.#ended = true;
          this.#onEnded();
        }
      } catch (error) {
        if (error instanceof EtcdError) outage.unanswered(error);
        waitMs = RENEW_AGAIN_MS;
      }
    }
  }
}

export function lost(leader: EtcdRecord | undefined): StoreError {
  const who = leader === undefined ? "another coordinator led" : `${decodeLeader(leader).name} leads`;
  return new StoreError("LEAD_LOST", `this coordinator has lost the lead: ${who} in the meantime`);
}

function encodeLeader({ holder, name, addresses = [], sinceMs }: Leader, lease: bigint): Buffer {
  return Buffer.from(JSON.stringify({ holder, name, addresses, sinceMs, lease: String(lease) }));
}

function decodeLeader({ value }: EtcdRecord): Leader {
  try {
    const record: Record<string, unknown> = { ...JSON.parse(value.toString("utf8")) };
    const { holder, name, addresses, sinceMs } = record;
    const known = Array.isArray(addresses) ? addresses.filter((it) => typeof it === "string") : [];
    const since = typeof sinceMs === "number" ? { sinceMs } : {};
    if (typeof holder === "string" && typeof name === "string")
      return { holder, name, addresses: known, ...since };
  } catch {
    // The invalid record isn't this coordinator's.
  }
  return { holder: "", name: "an unknown program" };
}

function removal({ createRevision }: EtcdRecord) {
  const same = { type: "create-revision", key: LEADER_KEY, revision: createRevision } as const;
  return { compares: [same], ops: [{ type: "delete", from: LEADER_KEY } as const] };
}

async function untilChanged(options: LeadershipOptions, after: bigint): Promise<void> {
  const { etcd, clock, signal } = options;
  const enough = new AbortController();
  const either = linkSignals(signal, enough.signal);
  const timer = pause(clock, LOOK_EVERY_MS, either.signal).then(() => enough.abort());
  await etcd.changed(LEADER_KEY, after, either.signal).catch(() => timer);
  enough.abort();
  either.unlink();
}
