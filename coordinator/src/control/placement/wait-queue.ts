import { type BackOff, backOffMs } from "@forage/common/back-off";
import type { Fleet, Miss, PodSpec } from "@forage/scheduler";
import type { PodEntry } from "../../state/entries.ts";

/** A pod that waits for a node. */
export interface Waiting {
  readonly pod: PodEntry;
  readonly spec: PodSpec;
}

interface Member extends Waiting {
  readonly group: Group;
  /** The node on which the pod has reserved a place until other pods have left. */
  nominated?: { readonly node: string; readonly miss: Miss };
}

/** Pods that placement can't tell apart: a refusal of one holds for all. */
interface Group {
  readonly key: string;
  readonly members: Map<string, Member>;
  /** The miss since which no node fits. Undefined: the pods have to be tried. */
  miss: Miss | undefined;
  /** A change may help the group, which only a search can show. */
  hopeful: boolean;
  failures: number;
  retryAtMs: number;
  summary: string | undefined;
  explainedAtMs: number;
  /** The position in the fleet's changes that the summary covers. */
  explainedAt: number;
}

export interface WaitQueueOptions {
  readonly fleet: Fleet;
  readonly monotonicMs: () => number;
}

/** A group whose search was in vain waits this long before the next one, doubling up to the second. Room that surely fits never waits. */
const BACK_OFF: BackOff = { baseMs: 100, capMs: 10_000 };
/** The longest wait before another attempt, as in kube-scheduler, in case a hint is ever missing. */
const FLUSH_MS = 300_000;
/** A summary may be this old; explaining asks every node. */
const REFRESH_MS = 1_000;

/**
 * The pods that wait for a node, grouped by class. A group that no node could take is tried again only after a change that may make room
 * for it: whatever else happens costs it nothing.
 */
export class WaitQueue {
  readonly #options: WaitQueueOptions;
  readonly #members = new Map<string, Member>();
  readonly #groups = new Map<string, Group>();
  /** Uids of pods to try in the next pass, whatever is known of their groups. */
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

  /** Adds the pod, or replaces what is known of it. */
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

  /** Tries the pod in the next pass. */
  retry(uid: string): void {
    if (this.#members.has(uid)) this.#due.add(uid);
  }

  /** The pods to try now. */
  takeDue(): Waiting[] {
    const nowMs = this.#options.monotonicMs();
    const flush = nowMs - this.#flushedAtMs >= FLUSH_MS;
    if (flush) this.#flushedAtMs = nowMs;
    const due = new Set<Waiting>();
    for (const group of this.#groups.values()) {
      if (flush) group.miss = undefined;
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

  /** The group of the pod is known to have no node, and nothing has changed since: no other pod of it needs to be tried. */
  isHopeless(uid: string): boolean {
    const member = this.#members.get(uid);
    return member !== undefined && member.nominated === undefined && member.group.miss !== undefined;
  }

  /** Records that no node could take the pod and that preemption could not help. This holds for its whole group. */
  failed(uid: string): void {
    const member = this.#members.get(uid);
    if (member === undefined) return;
    const { group, spec } = member;
    this.#unnominate(member);
    group.miss = this.#options.fleet.miss(spec);
    group.hopeful = false;
    group.failures++;
    group.retryAtMs = this.#options.monotonicMs() + backOffMs(group.failures, BACK_OFF);
  }

  /** The pod holds a place on a node until others have left it. */
  nominate(uid: string, node: string): void {
    const member = this.#members.get(uid);
    if (member === undefined) return;
    member.nominated = { node, miss: this.#options.fleet.miss(member.spec) };
    this.#nominated.add(uid);
  }

  /** The pod holds no place any more. */
  release(uid: string): void {
    const member = this.#members.get(uid);
    if (member !== undefined) this.#unnominate(member);
  }

  /** The pod has a node. Until that is written it stays in the queue, and is tried again if it can't be. */
  placed(uid: string): void {
    const member = this.#members.get(uid);
    if (member === undefined) return;
    this.#unnominate(member);
    member.group.failures = 0;
  }

  /** Returns the reason why the pods of this pod's group have no node. */
  summaryOf(uid: string): string | undefined {
    return this.#members.get(uid)?.group.summary;
  }

  /** Sets why no node takes the pods of the group; returns these. */
  explain(uid: string, summary: string): Waiting[] {
    const group = this.#members.get(uid)?.group;
    if (group === undefined) return [];
    group.summary = summary;
    group.explainedAtMs = this.#options.monotonicMs();
    group.explainedAt = this.#options.fleet.changes;
    return [...group.members.values()].filter(({ nominated }) => nominated === undefined);
  }

  /** One pod of each group whose summary may be out of date, the oldest first. */
  outdated(): Waiting[] {
    const nowMs = this.#options.monotonicMs();
    return this.#outdated()
      .filter((group) => nowMs - group.explainedAtMs >= REFRESH_MS)
      .sort((a, b) => a.explainedAtMs - b.explainedAtMs)
      .flatMap(({ members }) => [...members.values()].filter((it) => it.nominated === undefined).slice(0, 1));
  }

  /** Milliseconds until time alone makes something due; undefined while nothing waits. */
  nextMs(): number | undefined {
    if (this.#groups.size === 0) return undefined;
    const nowMs = this.#options.monotonicMs();
    let atMs = this.#flushedAtMs + FLUSH_MS;
    for (const group of this.#groups.values()) if (group.hopeful) atMs = Math.min(atMs, group.retryAtMs);
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
        miss: undefined,
        hopeful: false,
        failures: 0,
        retryAtMs: 0,
        ...never,
      };
      this.#groups.set(key, group);
    }
    return group;
  }

  #isDue(group: Group, nowMs: number): boolean {
    if (group.miss === undefined) {
      group.hopeful = false;
      return true;
    }
    const hope = group.miss.hope();
    if (hope !== "no") group.hopeful = true;
    const due = hope === "yes" || (group.hopeful && group.retryAtMs <= nowMs);
    if (due) {
      group.miss = undefined;
      group.hopeful = false;
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
 * Reports whether the pod may take another node. A nominated pod waits for its victims, unless another node certainly fits at
 * once.
 */
function mayLeave({ nominated }: Member): boolean {
  return nominated?.miss.hope(nominated.node) === "yes";
}
