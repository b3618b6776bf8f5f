import { messageOf } from "@forage/common/message-of";
import type { VirtualClock } from "@forage/common/virtual-clock";
import { LEADER_TTL_SECONDS } from "../../coordinator/src/store/etcd/leadership.ts";
import { type Op, StoreError, type TxnResult, type WatchBatch } from "../../coordinator/src/store/index.ts";
import type { Blame } from "../fleet/violation.ts";
import type { SimMember } from "./sim-member.ts";

export interface ClusterRulesOptions {
  readonly time: VirtualClock;
  readonly members: () => readonly SimMember[];
  /** Reports whether etcd answers. */
  readonly etcdUp: () => boolean;
  readonly blame: Blame;
}

/** The time within which another coordinator must lead and decide: the lease's duration and two seconds. */
const LEAD_LIMIT_MS = (LEADER_TTL_SECONDS + 2) * 1_000;
/** Becoming the leader and starting the controllers together need fewer round trips. */
const ROUND_TRIPS = 20;
/**
 * The time after which a former leader has noticed that another coordinator leads: it renews its lease, and a call may
 * need a retry.
 */
const TWO_LEADERS_MS = 8_000;
/**
 * The time after which a fault has no effect any more: calls have failed, leases have expired, and a process has
 * restarted.
 */
const SETTLED_MS = 30_000;
/**
 * The time by which a follower may be behind. It reads the head every second, also if the message about a change was
 * lost.
 */
const BEHIND_MS = 5_000;
const USUAL_LATENCY_MS = 20;

interface Write {
  readonly by: string;
  readonly puts: ReadonlyMap<string, Buffer>;
}

/** Rules for several coordinators that share one store. */
export class ClusterRules {
  readonly #options: ClusterRulesOptions;
  readonly #acknowledged = new Map<number, Write>();
  /** The changes of each revision in etcd. */
  readonly #history = new Map<number, ReadonlyMap<string, Buffer>>();
  /** The last time at which a member or its connection to etcd had a fault. */
  readonly #troubledMs = new Map<SimMember, number>();
  /** The time since which a member without faults has followed. */
  readonly #followsSinceMs = new Map<SimMember, number>();
  #leaderlessSinceMs: number;
  #undecidedSinceMs: number;
  /** The time since which a member without faults has known that its store belongs to its nodes. */
  readonly #provenSinceMs = new Map<SimMember, number>();
  #disturbedMs: number;
  #twoSinceMs: number | undefined;
  /** The longest time in which no coordinator led although one could have. */
  longestLeaderlessMs = 0;
  /** The longest time in which no coordinator decided although one could have. */
  longestUndecidedMs = 0;
  changes = 0;
  #leader: SimMember | undefined;

  constructor(options: ClusterRulesOptions) {
    this.#options = options;
    this.#leaderlessSinceMs = options.time.nowMs();
    this.#undecidedSinceMs = options.time.nowMs();
    this.#disturbedMs = options.time.nowMs();
  }

  /** The leader, if there is one and it can write. */
  get leader(): SimMember | undefined {
    return this.#options
      .members()
      .find((member) => member.leading !== undefined && !this.#isTroubled(member));
  }

  /** Called for each revision in etcd, in order. */
  stored({ revision, events }: WatchBatch): void {
    const puts = new Map<string, Buffer>();
    for (const event of events)
      if (event.type === "put") puts.set(event.record.key, Buffer.from(event.record.value));
    this.#history.set(revision, puts);
    this.#compare(revision);
  }

  /** Called with each write that a coordinator considers done. */
  acknowledged(by: string, ops: readonly Op[], { succeeded, revision }: TxnResult): void {
    const puts = new Map<string, Buffer>();
    for (const op of ops) if (op.type === "put") puts.set(op.key, Buffer.from(op.value));
    if (!succeeded || puts.size === 0) return;
    const before = this.#acknowledged.get(revision);
    if (before !== undefined)
      this.#options.blame(`${before.by} and ${by} have both written revision ${revision}`);
    this.#acknowledged.set(revision, { by, puts });
    this.#compare(revision);
  }

  /** Called for a member that has ended by itself. */
  ended(member: SimMember, error: unknown): void {
    const text = messageOf(error);
    const isCorrupt = causesOf(error).some((it) => it instanceof StoreError && it.code === "CORRUPT");
    if (isCorrupt || text.includes("differs"))
      this.#options.blame(`${member.name} found another history: ${text}`);
    const quietMs = this.#nowMs - (this.#troubledMs.get(member) ?? 0);
    if (quietMs > SETTLED_MS)
      this.#options.blame(`${member.name} ended, though nothing had befallen it: ${text}`);
  }

  /** Called when a fault begins. */
  disturbed(): void {
    this.#disturbedMs = this.#nowMs;
  }

  /** Checks the members. Must be called several times a second. */
  check(): void {
    for (const member of this.#options.members()) this.#checkMember(member);
    this.#checkSingleLeader();
    const { leader } = this;
    if (leader !== undefined && leader !== this.#leader) {
      this.changes++;
      this.#leader = leader;
    }
    // A coordinator whose messages are late or sometimes lost may still be the leader.
    const isLed = this.#options.members().some((it) => it.leading !== undefined && !this.#isCutOff(it));
    if (isLed) this.#leaderlessSinceMs = this.#nowMs;
    this.#checkDecisions();
    const [able, sinceMs] = firstOf(this.#followsSinceMs) ?? [];
    if (able === undefined || sinceMs === undefined) return;
    const forMs = this.#nowMs - Math.max(this.#leaderlessSinceMs, this.#disturbedMs, sinceMs);
    this.longestLeaderlessMs = Math.max(this.longestLeaderlessMs, forMs);
    if (forMs > LEAD_LIMIT_MS + ROUND_TRIPS * 2 * able.way.latencyMs)
      this.#options.blame(`no coordinator has led for ${forMs} ms, though ${able.name} could have`);
  }

  /** Checks that a coordinator which has followed a deciding one decides without waiting for nodes. */
  #checkDecisions(): void {
    // A coordinator that has not followed one waits for the nodes, for the duration of its start.
    const decides = (member: SimMember): boolean =>
      member.leading !== undefined &&
      !this.#isCutOff(member) &&
      (!member.isProven || member.leading.core.decides());
    if (this.#options.members().some(decides)) this.#undecidedSinceMs = this.#nowMs;
    const [able, sinceMs] = firstOf(this.#provenSinceMs) ?? [];
    if (able === undefined || sinceMs === undefined) return;
    const forMs = this.#nowMs - Math.max(this.#undecidedSinceMs, this.#disturbedMs, sinceMs);
    this.longestUndecidedMs = Math.max(this.longestUndecidedMs, forMs);
    if (forMs > LEAD_LIMIT_MS + ROUND_TRIPS * 2 * able.way.latencyMs)
      this.#options.blame(`no coordinator has decided for ${forMs} ms, though ${able.name} could have`);
  }

  /** Checks that no acknowledged write is missing and that all followers are up to date. Called at rest. */
  conclude(revision: number): void {
    for (const [written, { by }] of this.#acknowledged)
      if (!this.#history.has(written))
        this.#options.blame(`revision ${written}, which ${by} acknowledged, is lost`);
    for (const { name, following } of this.#options.members())
      if (following !== undefined && following.store.revision !== revision)
        this.#options.blame(`${name} is at revision ${following.store.revision} of ${revision}`);
  }

  get #nowMs(): number {
    return this.#options.time.nowMs();
  }

  #compare(revision: number): void {
    const write = this.#acknowledged.get(revision);
    const stored = this.#history.get(revision);
    if (write === undefined || stored === undefined) return;
    for (const [key, value] of write.puts)
      if (stored.get(key)?.equals(value) !== true)
        this.#options.blame(`${key} of revision ${revision}, which ${write.by} acknowledged, is lost`);
  }

  #isTroubled(member: SimMember): boolean {
    const { lossShare, latencyMs } = member.way;
    return this.#isCutOff(member) || lossShare > 0 || latencyMs > USUAL_LATENCY_MS;
  }

  #isCutOff({ dead, gate, way }: SimMember): boolean {
    return dead || gate.held || way.cut || !this.#options.etcdUp();
  }

  #checkMember(member: SimMember): void {
    const { following } = member;
    const isTroubled = this.#isTroubled(member);
    if (isTroubled) this.#troubledMs.set(member, this.#nowMs);
    if (isTroubled || !member.isProven) this.#provenSinceMs.delete(member);
    else this.#provenSinceMs.set(member, this.#provenSinceMs.get(member) ?? this.#nowMs);
    if (isTroubled || following === undefined) {
      this.#followsSinceMs.delete(member);
      return;
    }
    const sinceMs = this.#followsSinceMs.get(member) ?? this.#nowMs;
    this.#followsSinceMs.set(member, sinceMs);
    const { behindMs } = following.store;
    if (this.#nowMs - sinceMs > BEHIND_MS && behindMs > BEHIND_MS)
      this.#options.blame(`${member.name} is ${behindMs} ms behind, though nothing befalls it`);
  }

  #checkSingleLeader(): void {
    const leading = this.#options.members().filter((it) => it.leading !== undefined && !this.#isTroubled(it));
    if (leading.length < 2) {
      this.#twoSinceMs = undefined;
      return;
    }
    this.#twoSinceMs ??= this.#nowMs;
    if (this.#nowMs - this.#twoSinceMs > TWO_LEADERS_MS)
      this.#options.blame(`${leading.map(({ name }) => name).join(" and ")} lead at the same time`);
  }
}

function firstOf(sinceMs: ReadonlyMap<SimMember, number>): readonly [SimMember, number] | undefined {
  return [...sinceMs].sort(([, a], [, b]) => a - b)[0];
}

function causesOf(error: unknown): Error[] {
  return error instanceof Error ? [error, ...causesOf(error.cause)] : [];
}
