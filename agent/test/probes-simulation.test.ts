import assert from "node:assert/strict";
import { test } from "node:test";
import { randomOf } from "@forage/common/random";
import { VirtualClock } from "@forage/common/virtual-clock";
import type { ProbeAnswer } from "../src/probes/probe-answer.ts";
import type { ProbeVerdict } from "../src/probes/probe-machine.ts";
import { ProbeRunner, type WatchedContainer } from "../src/probes/probe-runner.ts";
import {
  type ContainerProbes,
  PROBE_KINDS,
  type ProbeHandler,
  type ProbeKind,
  type ProbeSpec,
} from "../src/probes/probe-spec.ts";

const SEEDS = 150;
const RUN_MS = 300_000;
// Probes that are due within this time start together.
const SLACK_MS = 10;

interface Probing {
  readonly kind: ProbeKind;
  readonly launchedMs: number;
  answeredMs?: number;
  answer?: ProbeAnswer;
}

/** A container that is healthy and unhealthy in turn, with the log of its probes and reports. */
interface History {
  readonly probes: ContainerProbes;
  readonly asked: Probing[];
  readonly verdicts: { readonly atMs: number; readonly verdict: ProbeVerdict }[];
}

type Random = () => number;

function chooseProbes(random: Random, eager: boolean): ContainerProbes {
  const whole = (below: number) => Math.floor(random() * below);
  const spec = (kind: ProbeKind): ProbeSpec => {
    // The handler contains the kind, so that the fake container knows which probe it gets.
    const handler: ProbeHandler = eager
      ? { type: "http", scheme: "HTTP", port: 80, path: kind, headers: [] }
      : { type: "exec", command: [kind] };
    return {
      handler,
      initialDelayMs: whole(3) * 7_000,
      periodMs: (1 + whole(12)) * 1_000,
      timeoutMs: (1 + whole(15)) * 1_000,
      successThreshold: kind === "readiness" ? 1 + whole(3) : 1,
      failureThreshold: 1 + whole(4),
    };
  };
  const chosen: { [Kind in ProbeKind]?: ProbeSpec } = {};
  for (const kind of PROBE_KINDS) if (random() < 0.7) chosen[kind] = spec(kind);
  return chosen;
}

async function simulate(seed: number, eager: boolean): Promise<History> {
  const random = randomOf(seed).next;
  const clock = new VirtualClock();
  const beginMs = clock.nowMs();
  const nowMs = () => clock.nowMs() - beginMs;
  const history: History = { probes: chooseProbes(random, eager), asked: [], verdicts: [] };
  const sickness = random();
  const runner = new ProbeRunner({
    clock,
    onChange: (_, verdict) => history.verdicts.push({ atMs: nowMs(), verdict }),
    async run(handler, _, timeoutMs) {
      const kind = (
        handler.type === "exec" ? handler.command[0] : "path" in handler ? handler.path : ""
      ) as ProbeKind;
      const asked: Probing = { kind, launchedMs: nowMs() };
      history.asked.push(asked);
      await clock.sleep(random() < 0.8 ? random() * 20 : random() * timeoutMs);
      asked.answer = chooseAnswer(random, sickness);
      asked.answeredMs = nowMs();
      return asked.answer;
    },
  });
  const target = { address: "10.64.0.2", exec: () => Promise.reject(new Error("not to be run")) };
  const container: WatchedContainer = {
    id: `c${seed}`,
    probes: history.probes,
    target,
    startedAtMs: beginMs,
  };
  history.verdicts.push({ atMs: 0, verdict: runner.watch(container) });
  await clock.run(RUN_MS);
  const last = runner.verdict(container.id);
  assert.ok(last);
  history.verdicts.push({ atMs: RUN_MS, verdict: last });
  const closing = runner.close();
  await clock.run(20_000);
  await closing;
  assert.equal(clock.pending, 0, "every timer is let go");
  return history;
}

function chooseAnswer(random: Random, sickness: number): ProbeAnswer {
  const luck = random();
  if (luck < 0.05) return { outcome: "unknown", message: "could not be asked" };
  return random() < sickness
    ? { outcome: "failure", message: "sick" }
    : { outcome: "success", message: "well" };
}

/** Checks Kubernetes' rules from the log alone. */
function checkRules(history: History, eager: boolean): void {
  const { probes, asked, verdicts } = history;
  const byKind = Map.groupBy(asked, ({ kind }) => kind);
  const startedMs =
    probes.startup === undefined ? 0 : (verdicts.find(({ verdict }) => verdict.started)?.atMs ?? Infinity);
  const restartMs = verdicts.find(({ verdict }) => verdict.restart !== undefined)?.atMs ?? Infinity;
  for (const kind of PROBE_KINDS) {
    const spec = probes[kind];
    const of = byKind.get(kind) ?? [];
    if (spec === undefined) {
      assert.deepEqual(of, [], `${kind} is probed without a probe in the spec`);
      continue;
    }
    checkTimes(of, spec, eager);
    for (const { launchedMs } of of) {
      assert.ok(launchedMs >= spec.initialDelayMs - SLACK_MS, `${kind} is asked in its initial delay`);
      assert.ok(launchedMs <= restartMs, `${kind} is asked after a restart was called for`);
      if (kind === "startup") assert.ok(launchedMs <= startedMs, "startup is asked after it passed");
      else assert.ok(launchedMs >= startedMs, `${kind} is asked before startup passed`);
    }
  }
  assert.ok(
    verdicts.every(({ verdict }) => !verdict.ready || (verdict.started && verdict.restart === undefined)),
  );
}

function checkTimes(of: readonly Probing[], spec: ProbeSpec, eager: boolean): void {
  for (const [index, now] of of.entries()) {
    const before = of[index - 1];
    if (before === undefined) continue;
    assert.ok(before.answeredMs !== undefined && before.answeredMs <= now.launchedMs, "two at a time");
    if (eager) continue;
    const apartMs = (now.launchedMs - (of[0]?.launchedMs ?? 0)) % spec.periodMs;
    const offGridMs = Math.min(apartMs, spec.periodMs - apartMs);
    const wasHeldUp = now.launchedMs - before.answeredMs <= SLACK_MS;
    assert.ok(wasHeldUp || offGridMs <= 2 * SLACK_MS, `asked ${offGridMs} ms off the grid`);
  }
}

/** Counts the thresholds independently, for probes that all count. */
function expectedVerdict({ probes, asked }: History): {
  started: boolean;
  ready: boolean;
  restarts: boolean;
} {
  const runs = new Map<ProbeKind, { outcome: string; length: number }>();
  let started = probes.startup === undefined;
  let ready = false;
  let restarts = false;
  const answered = asked.filter((it) => it.answeredMs !== undefined && it.answeredMs <= RUN_MS);
  answered.sort((a, b) => (a.answeredMs ?? 0) - (b.answeredMs ?? 0));
  for (const { kind, answer } of answered) {
    const spec = probes[kind];
    if (restarts || spec === undefined || answer === undefined || answer.outcome === "unknown") continue;
    const run = runs.get(kind);
    const length = run?.outcome === answer.outcome ? run.length + 1 : 1;
    runs.set(kind, { outcome: answer.outcome, length });
    const well = answer.outcome === "success";
    if (length < (well ? spec.successThreshold : spec.failureThreshold)) continue;
    if (kind === "readiness") ready = well;
    else if (!well) restarts = true;
    else if (kind === "startup") started = true;
  }
  return { started, ready: started && !restarts && (probes.readiness === undefined || ready), restarts };
}

test("the rules of Kubernetes hold for any answers of a container", async () => {
  for (let seed = 1; seed <= SEEDS; seed += 1) {
    const history = await simulate(seed, false);
    try {
      checkRules(history, false);
      const { verdict } = history.verdicts.at(-1) ?? assert.fail();
      const expected = expectedVerdict(history);
      assert.deepEqual(
        { started: verdict.started, ready: verdict.ready, restarts: verdict.restart !== undefined },
        expected,
      );
    } catch (error) {
      throw new Error(`seed ${seed}`, { cause: error });
    }
  }
});

test("more frequent probing at the beginning violates no rule, and makes no restart more likely", async () => {
  for (let seed = 1; seed <= SEEDS; seed += 1) {
    const history = await simulate(seed, true);
    try {
      checkRules(history, true);
      checkRestart(history);
    } catch (error) {
      throw new Error(`seed ${seed}`, { cause: error });
    }
  }
});

/** Checks that a restart follows as many failures as the threshold, a period apart, without a success in between. */
function checkRestart({ probes, asked, verdicts }: History): void {
  const restart = verdicts.find(({ verdict }) => verdict.restart !== undefined);
  if (restart === undefined) return;
  const kind = restart.verdict.restart?.startsWith("startup") ? "startup" : "liveness";
  const spec = probes[kind] ?? assert.fail();
  const known = asked.filter((it) => it.kind === kind && it.answer && it.answer.outcome !== "unknown");
  const lastSuccess = known.findLastIndex(({ answer }) => answer?.outcome === "success");
  const failures = known.slice(lastSuccess + 1);
  const spanMs = (failures.at(-1)?.launchedMs ?? 0) - (failures[0]?.launchedMs ?? 0);
  const leastMs = (spec.failureThreshold - 1) * spec.periodMs;
  assert.ok(failures.length >= spec.failureThreshold, "too few failures");
  // A probe that took longer than the period is followed by the next one at once.
  if (known.some((it) => (it.answeredMs ?? 0) - it.launchedMs > spec.periodMs - SLACK_MS)) return;
  assert.ok(spanMs >= leastMs - 2 * SLACK_MS, `${spanMs} ms of failures, ${leastMs} are needed`);
}
