import assert from "node:assert/strict";
import { test } from "node:test";
import { VirtualClock } from "@forage/common/virtual-clock";
import type { ProbeAnswer } from "./probe-answer.ts";
import type { ProbeVerdict } from "./probe-machine.ts";
import { ProbeRunner, type WatchedContainer } from "./probe-runner.ts";
import type { ProbeHandler, ProbeSpec } from "./probe-spec.ts";
import type { RunProbe } from "./run-probe.ts";

const TCP: ProbeHandler = { type: "tcp", port: 80 };
const COMMAND: ProbeHandler = { type: "exec", command: ["check"] };
const YES: ProbeAnswer = { outcome: "success", message: "yes" };
const NO: ProbeAnswer = { outcome: "failure", message: "no" };

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

/** A host whose probes answer what and when `answer` decides. */
class Host {
  readonly clock = new VirtualClock();
  readonly changes: { readonly id: string; readonly verdict: ProbeVerdict }[] = [];
  readonly runner: ProbeRunner;
  running = 0;
  mostRunning = 0;

  constructor(answer: (address: string, signal: AbortSignal) => Promise<ProbeAnswer>) {
    const run: RunProbe = async (_, { address }, __, signal) => {
      this.running += 1;
      this.mostRunning = Math.max(this.mostRunning, this.running);
      try {
        return await answer(address, signal);
      } finally {
        this.running -= 1;
      }
    };
    this.runner = new ProbeRunner({
      clock: this.clock,
      run,
      onChange: (id, verdict) => this.changes.push({ id, verdict }),
    });
  }

  container(id: string, probes: WatchedContainer["probes"]): WatchedContainer {
    const target = { address: id, exec: () => Promise.reject(new Error("not to be run")) };
    return { id, probes, target, startedAtMs: this.clock.nowMs() };
  }
}

test("reports a verdict when it changes, not with every answer", async () => {
  let answer = NO;
  const host = new Host(() => Promise.resolve(answer));
  const first = host.runner.watch(host.container("web", { readiness: aProbe() }));
  assert.deepEqual(first, { started: true, ready: false, why: "readiness probe has not answered yet" });
  assert.deepEqual(host.changes, [], "not from within watch");
  await host.clock.run(100_000);
  assert.equal(host.changes.length, 3, "no more after the threshold");
  answer = { ...NO, detail: "something else each time" };
  await host.clock.run(50_000);
  assert.equal(host.changes.length, 3);
  assert.match(host.runner.verdict("web")?.why ?? "", /something else/);
  answer = YES;
  await host.clock.run(50_000);
  assert.deepEqual(host.changes.slice(3), [{ id: "web", verdict: { started: true, ready: true } }]);
  assert.deepEqual(
    host.runner.reports("web").map(({ kind, answer, inARow }) => [kind, answer?.message, inARow]),
    [["readiness", "yes", 1]],
  );
  await host.runner.close();
  assert.equal(host.clock.pending, 0);
});

test("delays count from the container's start, not from when it was watched", async () => {
  const askedAtMs: number[] = [];
  const host = new Host(() => {
    askedAtMs.push(host.clock.nowMs() - startMs);
    return Promise.resolve(YES);
  });
  const startMs = host.clock.nowMs();
  const container = host.container("web", { readiness: aProbe({ initialDelayMs: 5_000 }) });
  await host.clock.run(3_000);
  host.runner.watch(container);
  host.runner.watch(container);
  await host.clock.run(27_000);
  assert.deepEqual(askedAtMs, [5_000, 15_000, 25_000]);
  await host.runner.close();
});

test("runs at most 32 network probes and 4 commands at once, and loses none", async () => {
  for (const [handler, limit] of [
    [TCP, 32],
    [COMMAND, 4],
  ] as const) {
    const answered = new Set<string>();
    const host = new Host(async (address) => {
      await host.clock.sleep(900);
      answered.add(address);
      return YES;
    });
    for (let index = 0; index < 100; index += 1) {
      host.runner.watch(host.container(`c${index}`, { readiness: aProbe({ handler, periodMs: 60_000 }) }));
    }
    await host.clock.run(59_000);
    assert.equal(host.mostRunning, limit);
    assert.equal(answered.size, 100);
    const closing = host.runner.close();
    await host.clock.run(1_000);
    await closing;
  }
});

test("unwatch cancels running probes, and nothing is reported afterwards", async () => {
  const signals: AbortSignal[] = [];
  const host = new Host(async (_, signal) => {
    signals.push(signal);
    await host.clock.sleep(5_000);
    return YES;
  });
  host.runner.watch(host.container("web", { readiness: aProbe(), liveness: aProbe() }));
  await host.clock.run(1_000);
  assert.equal(signals.length, 2);
  host.runner.unwatch("web");
  host.runner.unwatch("never watched");
  assert.ok(signals.every((it) => it.aborted));
  await host.clock.run(60_000);
  assert.equal(signals.length, 2);
  assert.deepEqual(host.changes, []);
  assert.equal(host.runner.verdict("web"), undefined);
  assert.deepEqual(host.runner.reports("web"), []);
});

test("a container without a due probe has no timer", async () => {
  const host = new Host(() => Promise.resolve(NO));
  assert.deepEqual(host.runner.watch(host.container("web", {})), { started: true, ready: true });
  host.runner.watch(host.container("sick", { liveness: aProbe({ failureThreshold: 1 }) }));
  await host.clock.run(30_000);
  assert.equal(host.changes.at(-1)?.verdict.restart, "liveness probe failed: no");
  assert.equal(host.clock.pending, 0, "a container to be restarted is left alone");
});

test("close waits for running probes, and starts none afterwards", async () => {
  let ended = false;
  const host = new Host(async () => {
    await host.clock.sleep(500);
    ended = true;
    return YES;
  });
  host.runner.watch(host.container("web", { readiness: aProbe() }));
  await host.clock.run(100);
  const closed = host.runner.close();
  host.runner.watch(host.container("late", { readiness: aProbe() }));
  await host.clock.run(500);
  await closed;
  assert.ok(ended);
  assert.equal(host.clock.pending, 0);
});

test("a container whose start is in the future because the clock was set back is probed at once", async () => {
  const host = new Host(() => Promise.resolve(YES));
  const readiness = aProbe({ handler: TCP });
  const container = host.container("a", { readiness });
  host.runner.watch({ ...container, startedAtMs: host.clock.nowMs() + 3_600_000 });
  await host.clock.run(1_000);
  assert.equal(host.runner.verdict("a")?.ready, true);
});
