import { Semaphore } from "@forage/common/semaphore";
import type { Clock } from "../clock.ts";
import type { ProbeAnswer } from "./probe-answer.ts";
import {
  advance,
  beginProbes,
  decide,
  type ProbeMemory,
  type ProbeVerdict,
  verdictKey,
  verdictOf,
} from "./probe-machine.ts";
import { type ContainerProbes, PROBE_KINDS, type ProbeKind, type ProbeSpec } from "./probe-spec.ts";
import type { ProbeTarget, RunProbe } from "./run-probe.ts";

// Connections are cheap, but each needs a socket and a timer. More concurrent probes than this mean that all hang.
const NETWORK_PROBES_MAX = 32;
// A command costs a process of the runtime's client, about 50 ms of processor time.
const EXEC_PROBES_MAX = 4;
// Probes that are due within this time run together, so that the agent wakes up less often.
const SLACK_MS = 10;

export interface ProbeRunnerOptions {
  readonly clock: Clock;
  readonly run: RunProbe;
  /**
   * Called when the verdict on a container, or its reason, has changed. Never called within `watch` or after `unwatch`.
   */
  readonly onChange: (containerId: string, verdict: ProbeVerdict) => void;
}

/** One run of one container. */
export interface WatchedContainer {
  /** The runtime's id, which is different after a restart of the container. */
  readonly id: string;
  readonly probes: ContainerProbes;
  readonly target: ProbeTarget;
  /** The start of the container, by the wall clock. */
  readonly startedAtMs: number;
  /** The verdicts about this run from before the agent's restart. They apply until a probe changes them. */
  readonly before?: { readonly started: boolean; readonly ready: boolean };
}

/** A probe's state in the form that `describe` shows. */
export interface ProbeReport {
  readonly kind: ProbeKind;
  readonly spec: ProbeSpec;
  /** The newest answer. Undefined: none yet. */
  readonly answer?: ProbeAnswer;
  /** The number of equal results in a row. */
  readonly inARow: number;
}

interface Watch {
  readonly container: WatchedContainer;
  readonly abort: AbortController;
  memory: ProbeMemory;
  reportedKey: string;
  nextProbeAtMs: number | undefined;
}

/**
 * Probes containers as their machines decide, with one timer for all. Runs at most one probe of a kind for a container
 * at a time.
 */
export class ProbeRunner {
  readonly #options: ProbeRunnerOptions;
  readonly #watches = new Map<string, Watch>();
  readonly #networkGate = new Semaphore(NETWORK_PROBES_MAX);
  readonly #execGate = new Semaphore(EXEC_PROBES_MAX);
  readonly #running = new Set<Promise<void>>();
  #timer: { readonly atMs: number; readonly cancel: () => void } | undefined;
  #closed = false;

  constructor(options: ProbeRunnerOptions) {
    this.#options = options;
  }

  /** Starts probing at once and returns the current verdict. Has no effect for a container that is already watched. */
  watch(container: WatchedContainer): ProbeVerdict {
    const { clock } = this.#options;
    let watch = this.#watches.get(container.id);
    if (watch === undefined) {
      const nowMs = clock.monotonicMs();
      const memory = beginProbes(container.probes, {
        nowMs,
        startedAtMs: nowMs - Math.max(0, clock.nowMs() - container.startedAtMs),
        spread: spreadOf(container.id),
        ...(container.before && { before: container.before }),
      });
      watch = {
        container,
        abort: new AbortController(),
        memory,
        reportedKey: verdictKey(memory),
        nextProbeAtMs: nowMs,
      };
      if (!this.#closed) this.#watches.set(container.id, watch);
      this.#wakeAt(nowMs);
    }
    return verdictOf(container.probes, watch.memory);
  }

  /** Ends the container's probes, including running ones. Accepts unknown ids. */
  unwatch(id: string): void {
    const watch = this.#watches.get(id);
    this.#watches.delete(id);
    watch?.abort.abort();
  }

  verdict(id: string): ProbeVerdict | undefined {
    const watch = this.#watches.get(id);
    return watch && verdictOf(watch.container.probes, watch.memory);
  }

  reports(id: string): readonly ProbeReport[] {
    const watch = this.#watches.get(id);
    if (watch === undefined) return [];
    return PROBE_KINDS.flatMap((kind) => {
      const spec = watch.container.probes[kind];
      const memory = watch.memory.kinds[kind];
      if (spec === undefined || memory === undefined) return [];
      return [{ kind, spec, inARow: memory.inARow, ...(memory.answer && { answer: memory.answer }) }];
    });
  }

  /** Resolves once no probe is running. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#timer?.cancel();
    for (const id of [...this.#watches.keys()]) this.unwatch(id);
    await Promise.all(this.#running);
  }

  #wakeAt(atMs: number): void {
    if (this.#closed || (this.#timer !== undefined && this.#timer.atMs <= atMs)) return;
    this.#timer?.cancel();
    const cancel = this.#options.clock.schedule(Math.max(0, atMs - this.#options.clock.monotonicMs()), () => {
      this.#timer = undefined;
      this.#wake();
    });
    this.#timer = { atMs, cancel };
  }

  #wake(): void {
    const untilMs = this.#options.clock.monotonicMs() + SLACK_MS;
    let nextMs: number | undefined;
    for (const watch of this.#watches.values()) {
      if (watch.nextProbeAtMs !== undefined && watch.nextProbeAtMs <= untilMs)
        this.#launchDue(watch, untilMs);
      if (watch.nextProbeAtMs !== undefined)
        nextMs = Math.min(nextMs ?? watch.nextProbeAtMs, watch.nextProbeAtMs);
    }
    if (nextMs !== undefined) this.#wakeAt(nextMs);
  }

  #launchDue(watch: Watch, nowMs: number): void {
    const { probes } = watch.container;
    const { due } = decide(probes, watch.memory, nowMs);
    for (const kind of due) {
      const spec = probes[kind];
      if (spec === undefined) continue;
      watch.memory = advance(probes, watch.memory, { type: "launched", kind, nowMs });
      const running = this.#probe(watch, kind, spec).finally(() => this.#running.delete(running));
      this.#running.add(running);
    }
    watch.nextProbeAtMs = decide(probes, watch.memory, nowMs).nextProbeAtMs;
  }

  async #probe(watch: Watch, kind: ProbeKind, spec: ProbeSpec): Promise<void> {
    const { run } = this.#options;
    const { signal } = watch.abort;
    const gate = spec.handler.type === "exec" ? this.#execGate : this.#networkGate;
    try {
      const answer = await gate.run(signal, () =>
        run(spec.handler, watch.container.target, spec.timeoutMs, signal),
      );
      if (!signal.aborted) this.#learn(watch, kind, answer);
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  }

  #learn(watch: Watch, kind: ProbeKind, answer: ProbeAnswer): void {
    const { probes, id } = watch.container;
    const nowMs = this.#options.clock.monotonicMs();
    watch.memory = advance(probes, watch.memory, { type: "answered", kind, nowMs, answer });
    const decision = decide(probes, watch.memory, nowMs);
    watch.nextProbeAtMs = decision.due.length > 0 ? nowMs : decision.nextProbeAtMs;
    if (watch.nextProbeAtMs !== undefined) this.#wakeAt(watch.nextProbeAtMs);
    const key = verdictKey(watch.memory);
    if (key === watch.reportedKey) return;
    watch.reportedKey = key;
    this.#options.onChange(id, verdictOf(probes, watch.memory));
  }
}

/** Returns the spread of a container by FNV-1a, which is constant for the id and evenly distributed over many. */
function spreadOf(id: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < id.length; at++) hash = Math.imul(hash ^ id.charCodeAt(at), 0x01000193);
  return (hash >>> 0) / 2 ** 32;
}
