import type { Logger } from "pino";
import type { Clock } from "../control/clock.ts";
import { toEpochMs } from "../model/timestamp.ts";
import type { NodeEntry } from "../state/entries.ts";
import type { State } from "../state/state.ts";

export interface BeliefLimits {
  /** A node of which nothing is heard for so long is unreachable. */
  readonly unreachableMs: number;
  /** Nodes are believed in so long after a start of the coordinator: longer than an agent waits between two tries to connect. */
  readonly startGraceMs: number;
}

/** Three heartbeats may be missed, and an agent is given the time to start anew. */
export function defaultBeliefs(heartbeatIntervalMs: number): BeliefLimits {
  return { unreachableMs: Math.max(7_500, 3 * heartbeatIntervalMs), startGraceMs: 15_000 };
}

export interface BeliefsOptions {
  readonly state: State;
  readonly clock: Clock;
  readonly log: Logger;
  readonly limits: BeliefLimits;
}

interface Belief {
  /** By the monotonic clock. */
  heardMs: number;
  allowanceMs: number;
  believed: boolean;
  /** It is heard of again, and will be believed in if that lasts. */
  onProbation: boolean;
  /** Why nothing may be heard of it. */
  why: string;
  /** When it was lost, within the window. */
  losses: number[];
  cancel: () => void;
}

/** Losses that are so long ago no longer speak against a node. */
const lossWindowMs = 600_000;
/** So many are accidents; from the next on a node that comes back has to be heard of for a while. */
const freeLosses = 2;
const probationBaseMs = 10_000;
const probationCapMs = 60_000;
/**
 * Before a node is given up there is a second look: where the whole process was held up, what nodes said meanwhile is read between
 * the two.
 */
const secondLookMs = 500;
const leastLookMs = 50;

/** Which nodes are believed to be there. Feeds their health into the view. */
export class Beliefs {
  readonly #options: BeliefsOptions;
  readonly #beliefs = new Map<string, Belief>();
  #stopped = false;

  constructor(options: BeliefsOptions) {
    this.#options = options;
    for (const node of options.state.nodes()) this.#begin(node);
  }

  /** It has connected, or said something. */
  heard(node: string): void {
    if (this.#stopped) return;
    const belief = this.#beliefs.get(node) ?? this.#add(node, false);
    belief.heardMs = this.#options.clock.monotonicMs();
    belief.why = "it sends no heartbeats";
    if (!belief.believed) this.#comeBack(node, belief);
    if (belief.allowanceMs === this.#options.limits.unreachableMs) return;
    // The grace of the start is over with the first word.
    belief.allowanceMs = this.#options.limits.unreachableMs;
    if (!belief.believed) return;
    belief.cancel();
    this.#doubtLater(node, belief);
  }

  /** Its stream has ended: by its own doing or that of the network, which counts as a word of it, or for being silent. */
  left(node: string, silent: boolean): void {
    const belief = this.#beliefs.get(node);
    if (belief === undefined) return;
    if (!silent) {
      belief.why = "its connection was lost";
      belief.heardMs = this.#options.clock.monotonicMs();
    }
    if (!belief.believed) this.#fail(node, belief);
  }

  forget(node: string): void {
    this.#beliefs.get(node)?.cancel();
    this.#beliefs.delete(node);
  }

  stop(): void {
    this.#stopped = true;
    for (const belief of this.#beliefs.values()) belief.cancel();
    this.#beliefs.clear();
  }

  /** A node that was lost before the coordinator's start stays so until it is heard of. */
  #begin({ name, record }: NodeEntry): void {
    const lostMs = toEpochMs(record.unreachableSince);
    const belief = this.#add(name, lostMs === undefined);
    belief.why = "it has not connected since the coordinator started";
    belief.allowanceMs = Math.max(this.#options.limits.startGraceMs, this.#options.limits.unreachableMs);
    if (lostMs === undefined) this.#believe(name, belief);
    else this.#set(name, false, belief.why, lostMs);
  }

  #add(node: string, believed: boolean): Belief {
    const { clock, limits } = this.#options;
    const heardMs = clock.monotonicMs();
    const allowanceMs = limits.unreachableMs;
    const belief = {
      heardMs,
      allowanceMs,
      believed,
      onProbation: false,
      why: "",
      losses: [],
      cancel: () => {},
    };
    this.#beliefs.set(node, belief);
    return belief;
  }

  #comeBack(node: string, belief: Belief): void {
    const { clock } = this.#options;
    const sinceMs = clock.monotonicMs() - lossWindowMs;
    belief.losses = belief.losses.filter((atMs) => atMs > sinceMs);
    const waitMs = probationMs(belief.losses.length);
    if (waitMs === 0) this.#believe(node, belief);
    if (waitMs === 0 || belief.onProbation) return;
    belief.onProbation = true;
    const why = `it was lost ${belief.losses.length} times in ${lossWindowMs / 60_000} minutes and has to be heard of for ${waitMs / 1000} s`;
    this.#set(node, false, why);
    belief.cancel = clock.schedule(waitMs, () => {
      const silentMs = clock.monotonicMs() - belief.heardMs;
      if (silentMs < this.#options.limits.unreachableMs) this.#believe(node, belief);
      else this.#fail(node, belief);
    });
  }

  #fail(node: string, belief: Belief): void {
    belief.cancel();
    belief.onProbation = false;
    this.#set(node, false, belief.why);
  }

  #believe(node: string, belief: Belief): void {
    belief.cancel();
    belief.believed = true;
    belief.onProbation = false;
    this.#set(node, true, "");
    this.#doubtLater(node, belief);
  }

  #doubtLater(node: string, belief: Belief): void {
    const { clock } = this.#options;
    const restMs = (): number => belief.heardMs + belief.allowanceMs - clock.monotonicMs();
    belief.cancel = clock.schedule(Math.max(0, restMs() - secondLookMs), () => {
      belief.cancel = clock.schedule(Math.max(leastLookMs, restMs()), () => this.#doubt(node, belief));
    });
  }

  #doubt(node: string, belief: Belief): void {
    const { clock, log } = this.#options;
    const nowMs = clock.monotonicMs();
    if (belief.heardMs + belief.allowanceMs > nowMs) {
      this.#doubtLater(node, belief);
      return;
    }
    belief.believed = false;
    belief.losses.push(nowMs);
    log.warn({ node, why: belief.why, losses: belief.losses.length }, "node is unreachable");
    this.#set(node, false, belief.why);
  }

  #set(node: string, ready: boolean, message: string, sinceMs?: number): void {
    const { state, clock } = this.#options;
    const before = state.node(node)?.health;
    const same = before?.ready === ready && before.sinceMs !== undefined;
    const health = {
      lastSeenMs: before?.lastSeenMs,
      ...(before?.usage && { usage: before.usage }),
      ready,
      message,
      sinceMs: sinceMs ?? (same ? before.sinceMs : clock.nowMs()),
    };
    state.setNodeHealth(node, health, !same || before.message !== message);
  }
}

/** How long a node that was lost so often within the window has to be heard of until it is believed in again. */
function probationMs(losses: number): number {
  if (losses <= freeLosses) return 0;
  return Math.min(probationCapMs, probationBaseMs * 2 ** (losses - freeLosses - 1));
}
