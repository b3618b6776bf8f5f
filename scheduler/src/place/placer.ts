import type { PodClass } from "../pod/pod-class.ts";
import type { FleetState } from "../state/fleet-state.ts";
import type { Profile } from "../types.ts";
import { admits, hasRulesAboutPods } from "./admit.ts";
import { ClassCache } from "./class-cache.ts";
import { compileLiveRules, isStale, type LiveRules } from "./live-rules.ts";
import { type Scoring, scoringOf } from "./profile.ts";
import { best, scan } from "./scan.ts";
import { Shortlist } from "./shortlist.ts";

// Building a cache costs dozens of searches, so it pays only for a class that was requested this often.
const USES_BEFORE_CACHE = 32;

// Each cache takes about 40 bytes per node, together 400 bytes per node.
const CACHES_MAX = 10;

/**
 * Selects nodes: by scanning all of them for a rare class, and from a cache for a frequent one. Both give the same
 * result.
 */
export class Placer {
  readonly scoring: Scoring;
  readonly #state: FleetState;
  readonly #list = new Shortlist();
  #live = new WeakMap<PodClass, LiveRules>();
  #uses = new WeakMap<PodClass, number>();
  #generation = 0;
  /** The caches by last use, the latest last. Undefined for classes that can't be cached. */
  readonly #caches = new Map<PodClass, ClassCache | undefined>();

  constructor(state: FleetState, profile: Profile) {
    this.#state = state;
    this.scoring = scoringOf(profile);
  }

  /**
   * Returns the best node for the class, or -1 if there is none. `expected` is the number of pods of this class,
   * including this one, that will soon be placed.
   */
  place(podClass: PodClass, expected = 1): number {
    if (!this.scoring.accepts(podClass)) return -1;
    const cache = this.#cacheFor(podClass, expected);
    if (cache === undefined) return this.#placeByScan(podClass);
    const { live } = cache;
    const others = hasRulesAboutPods(live);
    cache.list(this.#list, (node) => !others || admits(live, node));
    return this.#best(live);
  }

  /** Returns every feasible node with totals. The shortlist belongs to the placer and is valid until its next call. */
  feasible(podClass: PodClass): Shortlist {
    const live = this.live(podClass);
    scan(this.#state, live, this.#list);
    this.scoring.locals(this.#state, live, this.#list);
    this.scoring.totals(live, this.#list);
    return this.#list;
  }

  live(podClass: PodClass): LiveRules {
    this.#keepUp();
    let live = this.#live.get(podClass);
    if (live === undefined || isStale(live, this.#state)) {
      live = compileLiveRules(podClass, this.#state, this.scoring.profile);
      this.#live.set(podClass, live);
    }
    return live;
  }

  // Bound pods keep their classes alive, and such classes would keep counters that the fleet has dropped.
  #keepUp(): void {
    if (this.#generation === this.#state.generation) return;
    this.#generation = this.#state.generation;
    this.#live = new WeakMap();
    this.#uses = new WeakMap();
    this.#caches.clear();
  }

  #placeByScan(podClass: PodClass): number {
    const live = this.live(podClass);
    if (this.scoring.best !== undefined) return this.scoring.best(this.#state, live);
    scan(this.#state, live, this.#list);
    this.scoring.locals(this.#state, live, this.#list);
    return this.#best(live);
  }

  #best(live: LiveRules): number {
    if (this.#list.length === 0) return -1;
    this.scoring.totals(live, this.#list);
    return best(this.#state, this.#list);
  }

  #cacheFor(podClass: PodClass, expected: number): ClassCache | undefined {
    this.#keepUp();
    const known = this.#caches.get(podClass);
    if (known !== undefined && !known.isStale) {
      // If there are several caches, the first is dropped next, so move this one to the end.
      if (this.#caches.size > 1) {
        this.#caches.delete(podClass);
        this.#caches.set(podClass, known);
      }
      return known.isUseful ? known : undefined;
    }
    const uses = (this.#uses.get(podClass) ?? 0) + expected;
    this.#uses.set(podClass, uses);
    if (uses < USES_BEFORE_CACHE) return undefined;
    this.#caches.delete(podClass);
    const cache = new ClassCache(this.#state, this.live(podClass), this.scoring);
    this.#caches.set(podClass, cache);
    for (const [oldest] of this.#caches) if (this.#caches.size > CACHES_MAX) this.#caches.delete(oldest);
    return cache.isUseful ? cache : undefined;
  }
}
