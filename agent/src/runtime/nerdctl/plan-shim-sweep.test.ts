import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { isRuncInit, planShimSweep, type Shim, UNUSED_SHIM_MS } from "./plan-shim-sweep.ts";
import { endProcess } from "./shim-sweeper.ts";

const NONE = new Map<string, number>();

test("ends a shim without a container once it has been unused long enough", () => {
  const first = planShimSweep([aShim()], new Set(), NONE, 0);
  assert.deepEqual(first.end, []);
  const early = planShimSweep([aShim()], new Set(), first.unusedSince, UNUSED_SHIM_MS - 1);
  assert.deepEqual(early.end, []);
  const late = planShimSweep([aShim()], new Set(), early.unusedSince, UNUSED_SHIM_MS);
  assert.deepEqual(late.end, [aShim()]);
});

test("ends a process only if it is still the one that was found", { timeout: 60_000 }, async (t) => {
  const child = spawn("sleep", ["600"], { stdio: "ignore" });
  t.after(() => child.kill("SIGKILL"));
  const ended = once(child, "exit");
  const pid = child.pid ?? 0;
  const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
  const startTicks = stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19] ?? "";
  await endProcess({ pid, startTicks: `${Number(startTicks) - 1}` });
  child.kill("SIGTERM");
  assert.deepEqual(await ended, [null, "SIGTERM"], "the first call has sent it nothing");

  const other = spawn("sleep", ["600"], { stdio: "ignore" });
  t.after(() => other.kill("SIGKILL"));
  const otherEnded = once(other, "exit");
  const otherStat = readFileSync(`/proc/${other.pid}/stat`, "latin1");
  const otherTicks = otherStat.slice(otherStat.lastIndexOf(")") + 2).split(" ")[19] ?? "";
  await endProcess({ pid: other.pid ?? 0, startTicks: otherTicks });
  assert.deepEqual(await otherEnded, [null, "SIGKILL"]);
});

test("recognises `runc init` by its program and arguments, whatever the form of runc's copy of itself", () => {
  const init = ["runc", "init", ""];
  for (const [program, argv, expected] of [
    ["/memfd:runc_cloned:/proc/self/exe (deleted)", init, true],
    ["/", init, true],
    ["/usr/sbin/runc", init, true],
    ["/usr/sbin/runc (deleted)", init, true],
    ["", init, false],
    ["/bin/sleep", init, false],
    ["/bin/myrunc", init, false],
    ["/usr/sbin/runc", ["runc", "exec"], false],
    ["/", ["sh"], false],
  ] as const)
    assert.equal(isRuncInit(program, argv), expected, `${program} ${argv.join(" ")}`);
});

test("keeps a shim whose container exists", () => {
  const { unusedSince } = planShimSweep([aShim()], new Set(), NONE, 0);
  const { end, unusedSince: after } = planShimSweep(
    [aShim()],
    new Set(["a"]),
    unusedSince,
    2 * UNUSED_SHIM_MS,
  );
  assert.deepEqual(end, []);
  // The time starts again if the container disappears again.
  assert.deepEqual(planShimSweep([aShim()], new Set(), after, 2 * UNUSED_SHIM_MS).end, []);
});

test("keeps a shim with a running program, even if containerd has lost the container", () => {
  const running = aShim({ children: [aChild({ unstarted: true }), aChild({ unstarted: false })] });
  const { unusedSince } = planShimSweep([running], new Set(), NONE, 0);
  assert.deepEqual(planShimSweep([running], new Set(), unusedSince, 2 * UNUSED_SHIM_MS).end, []);
});

test("ends a shim whose container was created but never started", () => {
  const created = aShim({ children: [aChild({ unstarted: true })] });
  const { unusedSince } = planShimSweep([created], new Set(), NONE, 0);
  assert.deepEqual(planShimSweep([created], new Set(), unusedSince, UNUSED_SHIM_MS).end, [created]);
});

test("a later process with the same pid starts a new waiting time", () => {
  const { unusedSince } = planShimSweep([aShim()], new Set(), NONE, 0);
  const later = aShim({ startTicks: "9" });
  assert.deepEqual(planShimSweep([later], new Set(), unusedSince, UNUSED_SHIM_MS).end, []);
});

function aShim(change: Partial<Shim> = {}): Shim {
  return { pid: 10, startTicks: "5", containerId: "a", children: [], ...change };
}

function aChild({ unstarted }: { unstarted: boolean }) {
  return { pid: 11, startTicks: "6", unstarted };
}
