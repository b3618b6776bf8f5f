import { VirtualClock } from "@forage/common/virtual-clock";
import { pino } from "pino";
import { type Control, type ControlOptions, startControl } from "../control/control.ts";
import type { MassLoss } from "../control/eviction/mass-loss.ts";
import type { ReportedStep } from "../control/step-sink.ts";
import { recordStatuses } from "../link/reports.ts";
import { MetricsCollector } from "../metrics/metrics-collector.ts";
import { ClusterView } from "../state/cluster-view.ts";
import type { PodEntry } from "../state/entries.ts";
import { loadClusterView } from "../state/load-view.ts";
import { createMemoryStore, type Store } from "../store/index.ts";
import { copyStore } from "./copy.ts";
import { optimisticStatus } from "./simulated-nodes.ts";

export interface SandboxOptions {
  readonly store: Store;
  readonly state: ClusterView;
  readonly nowMs: number;
  /** The options of the controllers, except for those that the copy replaces. */
  readonly control: Omit<
    ControlOptions,
    | "store"
    | "state"
    | "clock"
    | "log"
    | "events"
    | "metrics"
    | "readyEndpoints"
    | "serviceTrouble"
    | "routeProblem"
  >;
  /** Waits until other pending work has run. */
  readonly turn: () => Promise<void>;
}

/**
 * The number of turns of the event loop without any step after which the controllers count as idle.
 */
const QUIET_TURNS = 3;
/** The interval of measurements. It has no effect, because a plan measures nothing. */
const METRICS_INTERVAL_MS = 15_000;

/**
 * A copy of the fleet in memory. The coordinator's own controllers run on it, against simulated
 * nodes on which everything succeeds. Their steps are those of a real apply. Nothing outside the
 * copy changes.
 */
export class Sandbox {
  readonly store: Store;
  readonly state: ClusterView;
  readonly clock: VirtualClock;
  readonly #options: SandboxOptions;
  readonly #over = new AbortController();
  readonly #following: Promise<void>;
  readonly #known: ReadonlySet<string>;
  /** The new pods that were already reported. */
  readonly #reported = new Set<string>();
  /** The error because of which the copy's view could not be updated. */
  #broken: { readonly error: unknown } | undefined;
  #steps: ReportedStep[] = [];
  #running: { readonly control: Control; readonly metrics: MetricsCollector } | undefined;

  static async open(options: SandboxOptions): Promise<Sandbox> {
    const clock = new VirtualClock({ startMs: options.nowMs });
    const store = createMemoryStore({ clock });
    await copyStore(options.store, store, options.turn);
    const state = new ClusterView();
    const follow = await loadClusterView(store, state);
    for (const { name, health } of options.state.nodes()) state.setNodeHealth(name, { ...health }, false);
    return new Sandbox(options, { clock, store, state, follow });
  }

  private constructor(
    options: SandboxOptions,
    parts: {
      readonly clock: VirtualClock;
      readonly store: Store;
      readonly state: ClusterView;
      readonly follow: (signal: AbortSignal) => Promise<void>;
    },
  ) {
    this.#options = options;
    this.clock = parts.clock;
    this.store = parts.store;
    this.state = parts.state;
    this.#following = parts.follow(this.#over.signal).catch((error: unknown) => {
      this.#broken = { error };
    });
    this.#known = new Set(parts.state.pods().map(({ record }) => record.uid));
  }

  /** Starts the controllers. `massLoss` makes them treat most nodes as lost at once. */
  start(massLoss?: MassLoss): Control {
    const { store, state, clock } = this;
    const metrics = new MetricsCollector({ state, clock, intervalMs: METRICS_INTERVAL_MS });
    const control = startControl({
      ...this.#options.control,
      store,
      state,
      clock,
      metrics,
      massLoss,
      log: pino({ level: "silent" }),
      steps: { report: (step) => this.#steps.push(step) },
      // Scheduled runs are not part of an apply.
      startRuns: false,
      events: { record: () => {} },
      // A copy receives no traffic.
      readyEndpoints: () => 0,
      routeProblem: () => "",
    });
    this.#running = { control, metrics };
    return control;
  }

  /** Lets the controllers work until they wait for something. Returns their steps. */
  async settle(): Promise<ReportedStep[]> {
    let quiet = 0;
    for (let seen = -1; quiet < QUIET_TURNS; ) {
      await this.#options.turn();
      if (this.#broken !== undefined) throw this.#broken.error;
      quiet = this.state.revision === seen ? quiet + 1 : 0;
      seen = this.state.revision;
    }
    const steps = this.#steps;
    this.#steps = [];
    return steps;
  }

  /** Lets all nodes report success. Returns false if no status changes. */
  async report(): Promise<boolean> {
    const { store, state, clock } = this;
    const log = pino({ level: "silent" });
    let said = false;
    for (const { name, health } of state.nodes()) {
      if (!health.ready) continue;
      const statuses = state
        .podsOnNode(name)
        .flatMap((pod) => optimisticStatus(pod, !this.#known.has(pod.record.uid)) ?? []);
      if (statuses.length === 0) continue;
      said = true;
      await recordStatuses(name, statuses, { store, state, clock, log });
    }
    return said;
  }

  /** Returns the pods of the workload that were created since the last call. */
  newPodsOf(workload: string): PodEntry[] {
    const pods = this.state
      .podsOfWorkload(workload)
      .filter(({ record }) => !this.#known.has(record.uid) && !this.#reported.has(record.uid));
    for (const { record } of pods) this.#reported.add(record.uid);
    return pods;
  }

  async close(): Promise<void> {
    await this.#running?.control.close();
    this.#running?.metrics.close();
    this.#over.abort();
    await this.#following;
    await this.store.close();
  }
}
