import { describeAnswer, type ProbeAnswer } from "./probe-answer.ts";
import { type ContainerProbes, PROBE_KINDS, type ProbeKind, type ProbeSpec } from "./probe-spec.ts";

/** The state of the probes of one run of one container. Times are those of the monotonic clock. */
export interface ProbeMemory {
  /** Whether the startup probe has passed, or there is none. */
  readonly started: boolean;
  /** Set if the container has to restart. Probing has stopped then. */
  readonly restart?: { readonly kind: ProbeKind; readonly message: string };
  readonly kinds: { readonly [Kind in ProbeKind]?: KindMemory };
}

export interface KindMemory {
  /** The current verdict. Readiness and startup begin as not passed, liveness as passed. */
  readonly passed: boolean;
  /** The last answer that counted, and the number of equal ones in a row. */
  readonly lastOutcome?: "success" | "failure";
  readonly inARow: number;
  /** The time of the next probe. Probes run every `periodMs`, counted from the first one. */
  readonly nextAtMs: number;
  /** The time of an additional probe before that; see EAGER_FIRST_MS. */
  readonly eagerAtMs?: number;
  readonly eagerDelayMs: number;
  /** The running probe, if any. `counts`: it is a regular probe, not an additional one. */
  readonly inFlight?: { readonly counts: boolean };
  /** The newest answer, for people. */
  readonly answer?: ProbeAnswer;
}

export interface ProbeStart {
  readonly nowMs: number;
  /** The start of the container. It may be in the past. */
  readonly startedAtMs: number;
  /** A number in [0, 1] that shifts this container's probes within a period, so that many probes don't coincide. */
  readonly spread: number;
  /** The verdicts about this run from before the agent's restart. They apply until a probe changes them. */
  readonly before?: { readonly started: boolean; readonly ready: boolean };
}

export type ProbeEvent =
  | { readonly type: "launched"; readonly kind: ProbeKind; readonly nowMs: number }
  | {
      readonly type: "answered";
      readonly kind: ProbeKind;
      readonly nowMs: number;
      readonly answer: ProbeAnswer;
    };

export interface ProbeVerdict {
  readonly started: boolean;
  readonly ready: boolean;
  /** The reason to stop the container. Its restart policy decides what follows. */
  readonly restart?: string;
  /** The reason why the container is not ready or is about to restart, or the probe that has begun to fail. */
  readonly why?: string;
}

export interface ProbeDecision extends ProbeVerdict {
  /** The probes to start now. */
  readonly due: readonly ProbeKind[];
  /** The time of the next decision if no event occurs before; undefined: only after an event. */
  readonly nextProbeAtMs?: number;
}

/**
 * The delay of the first additional probe. A container is usually up long before the first period has passed. Therefore
 * startup and readiness are probed more often until they have passed once: after this delay, then after twice as long,
 * and so on. Additional probes can only make a success earlier; their failures don't count. They are not used for
 * commands, each of which costs a process.
 */
const EAGER_FIRST_MS = 100;
/** The largest shift between containers that start together: hardly noticeable, and enough to flatten a burst. */
const FRESH_SPREAD_MAX_MS = 500;

const NONE: readonly ProbeKind[] = [];

export function beginProbes(probes: ContainerProbes, start: ProbeStart): ProbeMemory {
  const { startup, liveness, readiness } = probes;
  const { before } = start;
  return {
    started: startup === undefined || before?.started === true,
    kinds: {
      ...(startup && { startup: beginKind(startup, false, start) }),
      ...(liveness && { liveness: beginKind(liveness, true, start) }),
      ...(readiness && { readiness: beginKind(readiness, before?.ready === true, start) }),
    },
  };
}

/** Returns the memory after the event. Pure. Events of kinds without a probe change nothing. */
export function advance(probes: ContainerProbes, memory: ProbeMemory, event: ProbeEvent): ProbeMemory {
  const spec = probes[event.kind];
  const kind = memory.kinds[event.kind];
  if (spec === undefined || kind === undefined) return memory;
  switch (event.type) {
    case "launched":
      return withKind(memory, event.kind, launched(spec, kind, event.nowMs));
    case "answered":
      return answered(probes, spec, memory, kind, event);
    default:
      return event satisfies never;
  }
}

/** Decides the next action. The decision is valid until `nextProbeAtMs` or the next event. */
export function decide(probes: ContainerProbes, memory: ProbeMemory, nowMs: number): ProbeDecision {
  let due: ProbeKind[] | undefined;
  let nextProbeAtMs: number | undefined;
  for (const name of PROBE_KINDS) {
    const kind = memory.kinds[name];
    if (kind === undefined || kind.inFlight !== undefined || !isActive(memory, name)) continue;
    const atMs = Math.min(kind.nextAtMs, kind.eagerAtMs ?? kind.nextAtMs);
    if (atMs <= nowMs) due = [...(due ?? []), name];
    else nextProbeAtMs = Math.min(nextProbeAtMs ?? atMs, atMs);
  }
  return {
    ...verdictOf(probes, memory),
    due: due ?? NONE,
    ...(nextProbeAtMs === undefined ? {} : { nextProbeAtMs }),
  };
}

export function verdictOf(probes: ContainerProbes, memory: ProbeMemory): ProbeVerdict {
  const { started, restart, kinds } = memory;
  const why = whyOf(probes, memory);
  return {
    started,
    ready: started && restart === undefined && (kinds.readiness?.passed ?? true),
    ...(restart === undefined ? {} : { restart: restart.message }),
    ...(why === undefined ? {} : { why }),
  };
}

/** Returns a key that is equal for verdicts with the same states and the same failures. */
export function verdictKey({ started, restart, kinds }: ProbeMemory): string {
  let key = `${started} ${restart !== undefined}`;
  for (const name of PROBE_KINDS) {
    const kind = kinds[name];
    if (kind === undefined) continue;
    key += ` ${kind.passed}`;
    if (kind.lastOutcome === "failure" || !kind.passed) key += ` ${kind.inARow} ${kind.answer?.message}`;
  }
  return key;
}

function beginKind(spec: ProbeSpec, passed: boolean, start: ProbeStart): KindMemory {
  const dueMs = start.startedAtMs + spec.initialDelayMs;
  const spreadMs =
    start.spread *
    (start.before === undefined ? Math.min(FRESH_SPREAD_MAX_MS, spec.periodMs) : spec.periodMs);
  // Other components wait for readiness and startup, so their first probe is not shifted; later additional probes are.
  const firstMs = Math.max(dueMs, start.nowMs) + (passed ? spreadMs : 0);
  return { passed, inARow: 0, nextAtMs: firstMs, eagerDelayMs: EAGER_FIRST_MS * (1 + start.spread) };
}

function launched(spec: ProbeSpec, kind: KindMemory, nowMs: number): KindMemory {
  const counts = nowMs >= kind.nextAtMs;
  const { eagerAtMs: _, ...rest } = kind;
  const missed = counts ? Math.floor((nowMs - kind.nextAtMs) / spec.periodMs) + 1 : 0;
  return { ...rest, inFlight: { counts }, nextAtMs: kind.nextAtMs + missed * spec.periodMs };
}

function answered(
  probes: ContainerProbes,
  spec: ProbeSpec,
  memory: ProbeMemory,
  kind: KindMemory,
  { kind: name, answer, nowMs }: ProbeEvent & { type: "answered" },
): ProbeMemory {
  const counts = kind.inFlight?.counts ?? true;
  const { inFlight: _, ...landed } = kind;
  const answered: KindMemory = { ...landed, answer };
  if (!isActive(memory, name)) return withKind(memory, name, answered);
  const next = scheduleEager(
    spec,
    counts ? apply(spec, answered, answer) : applyEager(answered, answer),
    nowMs,
  );
  const after = withKind(memory, name, next);
  if (name === "startup" && next.passed) return begun(probes, after, nowMs);
  const failing = name !== "readiness" && answer.outcome === "failure";
  if (!failing || next.inARow < spec.failureThreshold) return after;
  const times = spec.failureThreshold === 1 ? "" : ` ${spec.failureThreshold} times in a row`;
  return {
    ...after,
    restart: { kind: name, message: `${name} probe failed${times}: ${describeAnswer(answer)}` },
  };
}

function apply(spec: ProbeSpec, kind: KindMemory, { outcome }: ProbeAnswer): KindMemory {
  if (outcome === "unknown") return kind;
  const inARow = kind.lastOutcome === outcome ? kind.inARow + 1 : 1;
  const threshold = outcome === "success" ? spec.successThreshold : spec.failureThreshold;
  return {
    ...kind,
    lastOutcome: outcome,
    // Counts above the threshold change no decision.
    inARow: Math.min(inARow, threshold),
    passed: inARow >= threshold ? outcome === "success" : kind.passed,
  };
}

function applyEager(kind: KindMemory, { outcome }: ProbeAnswer): KindMemory {
  return outcome === "success" ? { ...kind, lastOutcome: outcome, inARow: 1, passed: true } : kind;
}

function scheduleEager(spec: ProbeSpec, kind: KindMemory, nowMs: number): KindMemory {
  // A success_threshold above 1 requires a duration, which additional probes would shorten.
  const may = !kind.passed && spec.handler.type !== "exec" && spec.successThreshold === 1;
  const atMs = nowMs + kind.eagerDelayMs;
  if (!may || kind.eagerDelayMs * 2 > spec.periodMs || atMs >= kind.nextAtMs) return kind;
  return { ...kind, eagerAtMs: atMs, eagerDelayMs: kind.eagerDelayMs * 2 };
}

/** Returns the memory after the startup probe has passed: the others begin, after their own initial delay. */
function begun(probes: ContainerProbes, memory: ProbeMemory, nowMs: number): ProbeMemory {
  let after: ProbeMemory = { ...memory, started: true };
  for (const name of PROBE_KINDS) {
    const kind = after.kinds[name];
    const spec = probes[name];
    if (name === "startup" || kind === undefined || spec === undefined) continue;
    const behind = nowMs - kind.nextAtMs;
    if (behind > 0) after = withKind(after, name, { ...kind, nextAtMs: nowMs });
  }
  return after;
}

function isActive({ started, restart }: ProbeMemory, name: ProbeKind): boolean {
  return restart === undefined && (name === "startup") !== started;
}

function whyOf(probes: ContainerProbes, { started, restart, kinds }: ProbeMemory): string | undefined {
  if (restart !== undefined) return restart.message;
  if (!started) return waiting("startup", kinds.startup, probes.startup);
  if (kinds.readiness?.passed === false) return waiting("readiness", kinds.readiness, probes.readiness);
  for (const name of PROBE_KINDS) {
    const kind = kinds[name];
    const spec = probes[name];
    if (kind?.lastOutcome !== "failure" || spec === undefined || name === "startup") continue;
    return `${name} probe fails, ${kind.inARow} of ${spec.failureThreshold}${kind.answer ? `: ${describeAnswer(kind.answer)}` : ""}`;
  }
  return undefined;
}

function waiting(
  name: ProbeKind,
  kind: KindMemory | undefined,
  spec: ProbeSpec | undefined,
): string | undefined {
  if (kind === undefined || spec === undefined) return undefined;
  if (kind.answer === undefined) return `${name} probe has not answered yet`;
  if (kind.answer.outcome !== "success") {
    // Failures below the threshold are part of a normal start, so the coordinator warns only about a failing probe.
    const failing = kind.lastOutcome === "failure" && kind.inARow >= spec.failureThreshold;
    return `${name} probe ${failing ? "fails" : "has not passed yet"}: ${describeAnswer(kind.answer)}`;
  }
  return `${name} probe passed ${kind.inARow} of ${spec.successThreshold} times: ${describeAnswer(kind.answer)}`;
}

function withKind(memory: ProbeMemory, name: ProbeKind, kind: KindMemory): ProbeMemory {
  return { ...memory, kinds: { ...memory.kinds, [name]: kind } };
}
