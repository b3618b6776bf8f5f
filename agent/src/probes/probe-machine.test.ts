import assert from "node:assert/strict";
import { test } from "node:test";
import type { ProbeAnswer } from "./probe-answer.ts";
import {
  advance,
  beginProbes,
  decide,
  type ProbeMemory,
  type ProbeStart,
  verdictKey,
} from "./probe-machine.ts";
import type { ContainerProbes, ProbeHandler, ProbeKind, ProbeSpec } from "./probe-spec.ts";

const COMMAND: ProbeHandler = { type: "exec", command: ["check"] };
const TCP: ProbeHandler = { type: "tcp", port: 80 };
const YES: ProbeAnswer = { outcome: "success", message: "yes" };
const NO: ProbeAnswer = { outcome: "failure", message: "no" };
const UNKNOWN: ProbeAnswer = { outcome: "unknown", message: "no address yet" };

function aProbe(changes: Partial<ProbeSpec> = {}): ProbeSpec {
  return {
    handler: COMMAND,
    initialDelayMs: 0,
    periodMs: 10_000,
    timeoutMs: 1_000,
    successThreshold: 1,
    failureThreshold: 3,
    ...changes,
  };
}

/** Passes answers to a machine whose probes take no time. */
class Play {
  readonly probes: ContainerProbes;
  memory: ProbeMemory;
  nowMs: number;

  constructor(probes: ContainerProbes, start: Partial<ProbeStart> = {}) {
    this.probes = probes;
    this.nowMs = start.nowMs ?? 0;
    this.memory = beginProbes(probes, { nowMs: 0, startedAtMs: this.nowMs, spread: 0, ...start });
  }

  get decision() {
    return decide(this.probes, this.memory, this.nowMs);
  }

  answer(kind: ProbeKind, answer: ProbeAnswer): this {
    assert.ok(this.decision.due.includes(kind), `${kind} is not due at ${this.nowMs}`);
    const { nowMs } = this;
    this.memory = advance(this.probes, this.memory, { type: "launched", kind, nowMs });
    this.memory = advance(this.probes, this.memory, { type: "answered", kind, nowMs, answer });
    return this;
  }

  /** Continues with the next probe. */
  next(): this {
    const { due, nextProbeAtMs } = this.decision;
    assert.deepEqual(due, []);
    assert.ok(nextProbeAtMs !== undefined, "nothing is to come");
    this.nowMs = nextProbeAtMs;
    return this;
  }
}

test("a container without probes is started and ready, and is never probed", () => {
  assert.deepEqual(new Play({}).decision, { started: true, ready: true, due: [] });
});

test("readiness changes by its thresholds in both directions", () => {
  const play = new Play({ readiness: aProbe({ successThreshold: 2, failureThreshold: 2 }) });
  const answers = [NO, YES, NO, YES, YES, NO, YES, NO, NO, YES, YES];
  const ready = answers.map((answer) => {
    play.answer("readiness", answer);
    const now = play.decision.ready;
    play.next();
    return now;
  });
  assert.deepEqual(ready, [false, false, false, false, true, true, true, true, false, false, true]);
});

test("liveness requests a restart after its threshold of consecutive failures, and stops probing", () => {
  const play = new Play({ liveness: aProbe(), readiness: aProbe({ initialDelayMs: 100_000 }) });
  for (const answer of [NO, NO, YES, NO, NO]) play.answer("liveness", answer).next();
  assert.equal(play.decision.restart, undefined);
  play.answer("liveness", { ...NO, detail: "deadlock" });
  assert.deepEqual(play.decision, {
    started: true,
    ready: false,
    restart: 'liveness probe failed 3 times in a row: no: "deadlock"',
    why: 'liveness probe failed 3 times in a row: no: "deadlock"',
    due: [],
  });
});

test("the startup probe delays the others, which begin as soon as it passes", () => {
  const play = new Play({
    startup: aProbe({ periodMs: 5_000, failureThreshold: 30 }),
    liveness: aProbe(),
    readiness: aProbe({ initialDelayMs: 60_000 }),
  });
  play.answer("startup", NO).next().answer("startup", NO).next();
  assert.deepEqual(play.decision.due, ["startup"]);
  assert.deepEqual(
    [play.decision.started, play.decision.ready, play.decision.why],
    [false, false, "startup probe has not passed yet: no"],
  );
  play.answer("startup", YES);
  assert.equal(play.nowMs, 10_000);
  assert.deepEqual(play.decision.due, ["liveness"]);
  play.answer("liveness", YES);
  assert.equal(play.decision.started, true);
  assert.equal(play.decision.nextProbeAtMs, 20_000, "readiness still has its own delay");
});

test("a startup probe that never passes restarts the container", () => {
  const play = new Play({ startup: aProbe({ failureThreshold: 2 }), liveness: aProbe() });
  play.answer("startup", NO).next().answer("startup", NO);
  assert.equal(play.decision.restart, "startup probe failed 2 times in a row: no");
  assert.equal(play.decision.started, false);
  assert.deepEqual(play.decision.due, []);
});

test("a probe that could not run counts neither as success nor as failure", () => {
  const play = new Play({ liveness: aProbe({ failureThreshold: 2 }) });
  play.answer("liveness", NO).next().answer("liveness", UNKNOWN).next();
  assert.equal(play.decision.restart, undefined);
  assert.equal(play.decision.why, "liveness probe fails, 1 of 2: no address yet");
  play.answer("liveness", NO);
  assert.equal(play.decision.restart, "liveness probe failed 2 times in a row: no");
});

test("probes keep their period, however late the answers are", () => {
  const probes = { liveness: aProbe({ initialDelayMs: 3_000 }) };
  let memory = beginProbes(probes, { nowMs: 1_000, startedAtMs: 0, spread: 0 });
  assert.equal(decide(probes, memory, 1_000).nextProbeAtMs, 3_000);
  memory = advance(probes, memory, { type: "launched", kind: "liveness", nowMs: 3_004 });
  assert.equal(decide(probes, memory, 50_000).nextProbeAtMs, undefined, "one at a time");
  memory = advance(probes, memory, { type: "answered", kind: "liveness", nowMs: 34_000, answer: YES });
  assert.deepEqual(decide(probes, memory, 34_000).due, ["liveness"]);
  memory = advance(probes, memory, { type: "launched", kind: "liveness", nowMs: 34_000 });
  memory = advance(probes, memory, { type: "answered", kind: "liveness", nowMs: 34_001, answer: YES });
  assert.equal(decide(probes, memory, 34_001).nextProbeAtMs, 43_000);
});

test("until it first passes, readiness is probed more often, and these failures don't count", () => {
  const play = new Play({ readiness: aProbe({ handler: TCP, failureThreshold: 1 }) });
  const asked: number[] = [];
  while (asked.length < 8) {
    asked.push(play.nowMs);
    play.answer("readiness", NO).next();
  }
  assert.deepEqual(asked, [0, 100, 300, 700, 1_500, 3_100, 6_300, 10_000]);
  assert.equal(play.memory.kinds.readiness?.inARow, 1);
  play.answer("readiness", NO).next();
  assert.equal(play.nowMs, 30_000, "the extra ones are used up");
});

test("an early success makes the container ready, and from then on only regular probes count", () => {
  const play = new Play({ readiness: aProbe({ handler: TCP, failureThreshold: 1 }) });
  play.answer("readiness", NO).next().answer("readiness", YES);
  assert.equal(play.decision.ready, true);
  assert.equal(play.decision.nextProbeAtMs, 10_000);
  play.next().answer("readiness", NO);
  assert.equal(play.decision.ready, false);
});

test("early failures of a startup probe don't count towards its threshold", () => {
  const play = new Play({ startup: aProbe({ handler: TCP, failureThreshold: 2 }) });
  while (play.nowMs < 10_000) play.answer("startup", NO).next();
  assert.equal(play.decision.restart, undefined);
  play.answer("startup", NO);
  assert.match(play.decision.restart ?? "", /2 times/);
});

test("sends no early probes for commands, or if several successes in a row are required", () => {
  for (const spec of [aProbe(), aProbe({ handler: TCP, successThreshold: 2 })]) {
    const play = new Play({ readiness: spec });
    assert.equal(play.answer("readiness", NO).decision.nextProbeAtMs, 10_000);
  }
});

test("a verdict from before the agent's restart applies until a probe changes it", () => {
  const probes = { startup: aProbe(), liveness: aProbe(), readiness: aProbe() };
  const play = new Play(probes, {
    nowMs: 500_000,
    startedAtMs: 0,
    spread: 0.5,
    before: { started: true, ready: true },
  });
  assert.deepEqual(play.decision, { started: true, ready: true, due: [], nextProbeAtMs: 505_000 });
  play.next();
  for (let failures = 0; failures < 3; failures += 1) {
    assert.equal(play.decision.ready, true);
    play.answer("liveness", YES).answer("readiness", NO).next();
  }
  assert.equal(play.decision.ready, false);
});

test("spread delays liveness of new containers by at most half a second, and readiness not at all", () => {
  const play = new Play({ liveness: aProbe(), readiness: aProbe() }, { spread: 0.999 });
  assert.deepEqual(play.decision.due, ["readiness"]);
  play.answer("readiness", YES).next();
  assert.equal(Math.round(play.nowMs), 500);
});

test("events of kinds without a probe change nothing", () => {
  const play = new Play({ liveness: aProbe() });
  const { memory, probes } = play;
  const event = { type: "answered", kind: "readiness", nowMs: 0, answer: NO } as const;
  assert.equal(advance(probes, memory, event), memory);
});

test("the reason contains the newest answer", () => {
  const play = new Play({ readiness: aProbe({ successThreshold: 2 }), liveness: aProbe() });
  const whys: (string | undefined)[] = [play.decision.why];
  play.answer("liveness", YES);
  for (const answer of [{ ...NO, detail: "starting up" }, YES, YES, NO]) {
    play.answer("readiness", answer);
    whys.push(play.decision.why);
    play.next();
    if (play.decision.due.includes("liveness")) play.answer("liveness", YES);
  }
  assert.deepEqual(whys, [
    "readiness probe has not answered yet",
    'readiness probe has not passed yet: no: "starting up"',
    "readiness probe passed 1 of 2 times: yes",
    undefined,
    "readiness probe fails, 1 of 3: no",
  ]);
});

test("a readiness probe fails only after its threshold of failures", () => {
  const play = new Play({ readiness: aProbe({ failureThreshold: 2 }) });
  play.answer("readiness", NO);
  assert.equal(play.decision.why, "readiness probe has not passed yet: no");
  for (let times = 0; times < 10 && play.decision.why?.includes("yet"); times++)
    play.next().answer("readiness", NO);
  assert.equal(play.decision.why, "readiness probe fails: no");
  assert.equal(play.memory.kinds.readiness?.inARow, 2);
});

test("verdicts that differ only in the response's text have the same key", () => {
  const keyAfter = (answer: ProbeAnswer) =>
    verdictKey(new Play({ readiness: aProbe() }).answer("readiness", answer).memory);
  assert.equal(keyAfter({ ...NO, detail: "at 10:00" }), keyAfter({ ...NO, detail: "at 10:01" }));
  assert.notEqual(keyAfter(NO), keyAfter({ ...NO, message: "no way" }));
  assert.notEqual(keyAfter(NO), keyAfter(YES));
});
