import { type BackOff, backOffMs } from "@forage/common/back-off";
import type { Fleet, InfeasibleClass, PodSpec } from "@forage/scheduler";
import type { PodEntry } from "../../state/entries.ts";

/** A pod that waits for a node. */
export interface WaitingPod {
  readonly pod: PodEntry;
  readonly spec: PodSpec;
}

interface Member extends WaitingPod {
  readonly group: Group;
  /** The node on which the pod reserves a place until its victims are gone. */
  nominated?: { readonly node: string; readonly infeasible: InfeasibleClass };
}

/** Pods that placement can't tell apart, so that the result for one holds for all. */
interface Group {
  readonly key: string;
  readonly members: Map<string, Member>;
  /** The last failed attempt, after which no node fits. Undefined: the pods have to be tried. */
  infeasible: InfeasibleClass | undefined;
  /** Whether a change may help the group, which only a search can show. */
  mayFit: boolean;
  failures: number;
  retryAtMs: number;
  summary: string | undefined;
  explainedAtMs: number;
  /** The position in the fleet's history of changes up to which the summary is current. */
  explainedAt: number;
}

export interface WaitQueueOptions {
  readonly fleet: Fleet;
  readonly monotonicMs: () => number;
}

/**
 * The delay before a group is searched again, doubling from the first value to the second. A change that certainly makes
 * room is not delayed.
 */
const BACK_OFF: BackOff = { baseMs: 100, capMs: 10_000 };
/** The longest time between attempts, as in kube-scheduler, in case a change was missed. */
const FLUSH_MS = 300_000;
/** The age up to which a summary is not updated, because an explanation evaluates every node. */
const REFRESH_MS = 1_000;

/**
 * The pods that wait for a node, grouped by class. An unschedulable group is tried again only after a change that may make
 * room for it. Other changes cost nothing.
 */
export class WaitQueue {
  readonly #options: WaitQueueOptions;
  readonly #members = new Map<string, Member>();
  readonly #groups = new Map<string, Group>();
  /** Uids of pods to try in the next pass, whatever the state of their groups. */
  readonly #due = new Set<string>();
  readonly #nominated = new Set<string>();
  #flushedAtMs: number;

  constructor(options: WaitQueueOptions) {
    this.#options = options;
    this.#flushedAtMs = options.monotonicMs();
  }

  get size(): number {
    return this.#members.size;
  }

  /** Adds or updates the pod. */
  set(pod: PodEntry, spec: PodSpec, groupKey: string): void {
    const { uid } = pod.record;
    const before = this.#members.get(uid);
    if (before !== undefined && before.group.key !== groupKey) this.delete(uid);
    const group = this.#groupOf(groupKey);
    const nominated = before?.group === group ? before.nominated : undefined;
    const member = { pod, spec, group, ...(nominated && { nominated }) };
    this.#members.set(uid, member);
    group.members.set(uid, member);
  }

  delete(uid: string): void {
    const member = this.#members.get(uid);
    if (member === undefined) return;
    this.#members.delete(uid);
    this.#due.delete(uid);
    this.#nominated.delete(uid);
    member.group.members.delete(uid);
    if (member.group.members.size === 0) this.#groups.delete(member.group.key);
  }

  /** Schedules the pod for the next pass. */
  retry(uid: string): void {
    if (this.#members.has(uid)) this.#due.add(uid);
  }

  /** Returns the pods to try now. */
  takeDue(): WaitingPod[] {
    const nowMs = this.#options.monotonicMs();
    const flush = nowMs - this.#flushedAtMs >= FLUSH_MS;
    if (flush) this.#flushedAtMs = nowMs;
    const due = new Set<WaitingPod>();
    for (const group of this.#groups.values()) {
      if (flush) group.infeasible = undefined;
      if (!this.#isDue(group, nowMs)) continue;
      for (const member of group.members.values()) if (member.nominated === undefined) due.add(member);
    }
    for (const uid of this.#nominated) {
      const member = this.#members.get(uid);
      if (member !== undefined && (flush || mayLeave(member))) due.add(member);
    }
    for (const uid of this.#due) {
      const member = this.#members.get(uid);
      if (member !== undefined) due.add(member);
    }
    this.#due.clear();
    return [...due];
  }

  /** Reports whether a pod has to be tried now. Pods with a reservation count, since their victims may be gone at any time. */
  hasDue(): boolean {
    if (this.#due.size > 0 || this.#nominated.size > 0) return true;
    const nowMs = this.#options.monotonicMs();
    return [...this.#groups.values()].some((group) => this.#isDue(group, nowMs));
  }

  /** Reports whether the pod's group is known to be unschedulable and nothing has changed since. */
  isHopeless(uid: string): boolean {
    const member = this.#members.get(uid);
    return member !== undefined && member.nominated === undefined && member.group.infeasible !== undefined;
  }

  /** Records that no node fits the pod and that preemption could not help. The result holds for its whole group. */
  failed(uid: string): void {
    const member = this.#members.get(uid);
    if (member === undefined) return;
    const { group, spec } = member;
    this.#unnominate(member);
    group.infeasible = this.#options.fleet.infeasibleClass(spec);
    group.mayFit = false;
    group.failures++;
    group.retryAtMs = this.#options.monotonicMs() + backOffMs(group.failures, BACK_OFF);
  }

  /** Records that the pod reserves a place on a node until its victims are gone. */
  nominate(uid: string, node: string): void {
    const member = this.#members.get(uid);
    if (member === undefined) return;
    member.nominated = { node, infeasible: this.#options.fleet.infeasibleClass(member.spec) };
    this.#nominated.add(uid);
  }

  /** Records that the pod has no reservation any more. */
  release(uid: string): void {
    const member = this.#members.get(uid);
    if (member !== undefined) this.#unnominate(member);
  }

  /**
   * Records that the pod was placed. It stays in the queue until the binding is written, and is tried again if the write
   * fails.
   */
  placed(uid: string): void {
    const member = this.#members.get(uid);
    if (member === undefined) return;
    this.#unnominate(member);
    member.group.failures = 0;
  }

  /** Returns the reason why the pods of this pod's group are unschedulable. */
  summaryOf(uid: string): string | undefined {
    return this.#members.get(uid)?.group.summary;
  }

  /** Sets the reason why the group is unschedulable. Returns the group's pods. */
  explain(uid: string, summary: string): WaitingPod[] {
    const group = this.#members.get(uid)?.group;
    if (group === undefined) return [];
    group.summary = summary;
    group.explainedAtMs = this.#options.monotonicMs();
    group.explainedAt = this.#options.fleet.changes;
    return [...group.members.values()].filter(({ nominated }) => nominated === undefined);
  }

  /** Returns one pod of each group with an outdated summary, the oldest first. */
  outdated(): WaitingPod[] {
    const nowMs = this.#options.monotonicMs();
    return this.#outdated()
      .filter((group) => nowMs - group.explainedAtMs >= REFRESH_MS)
      .sort((a, b) => a.explainedAtMs - b.explainedAtMs)
      .flatMap(({ members }) => [...members.values()].filter((it) => it.nominated === undefined).slice(0, 1));
  }

  /** Returns the milliseconds until a pod becomes due without a change. Undefined: no pod waits. */
  nextMs(): number | undefined {
    if (this.#groups.size === 0) return undefined;
    const nowMs = this.#options.monotonicMs();
    let atMs = this.#flushedAtMs + FLUSH_MS;
    for (const group of this.#groups.values()) if (group.mayFit) atMs = Math.min(atMs, group.retryAtMs);
    if (this.#outdated().length > 0) atMs = Math.min(atMs, nowMs + REFRESH_MS);
    return Math.max(1, atMs - nowMs);
  }

  #unnominate(member: Member): void {
    delete member.nominated;
    this.#nominated.delete(member.pod.record.uid);
  }

  #groupOf(key: string): Group {
    let group = this.#groups.get(key);
    if (group === undefined) {
      const never = { summary: undefined, explainedAtMs: 0, explainedAt: -1 };
      group = {
        key,
        members: new Map(),
        infeasible: undefined,
        mayFit: false,
        failures: 0,
        retryAtMs: 0,
        ...never,
      };
      this.#groups.set(key, group);
    }
    return group;
  }

  #isDue(group: Group, nowMs: number): boolean {
    if (group.infeasible === undefined) {
      group.mayFit = false;
      return true;
    }
    const chance = group.infeasible.fitChance();
    if (chance !== "no") group.mayFit = true;
    const due = chance === "yes" || (group.mayFit && group.retryAtMs <= nowMs);
    if (due) {
      group.infeasible = undefined;
      group.mayFit = false;
    }
    return due;
  }

  #outdated(): Group[] {
    const { changes } = this.#options.fleet;
    return [...this.#groups.values()].filter(
      ({ summary, explainedAt }) => summary !== undefined && explainedAt !== changes,
    );
  }
}

/**
 * Reports whether the pod may be placed elsewhere. A pod with a reservation waits for its victims unless it certainly fits
 * on another node.
 */
function mayLeave({ nominated }: Member): boolean {
  return nominated?.infeasible.fitChance(nominated.node) === "yes";
}
