import assert from "node:assert/strict";
import { kill } from "node:process";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { findProcesses } from "../../hack/lib/process-identity.ts";
import { waitFor } from "../../hack/lib/wait-for.ts";
import { RuntimeError } from "../src/runtime/runtime.ts";
import { openNerdctl } from "./nerdctl-under-test.ts";

// From the start to well after a run's end on an idle machine. The result must be the same for every moment.
const MOMENTS_MS = [0, 30, 60, 90, 120, 160, 200, 300, 500];

test("after nerdctl was killed at any moment of a run, a check and a retry give one container that can be removed", async (t) => {
  const { signal } = t;
  const it = await openNerdctl();
  t.after(() => it.close());
  const outcomes: string[] = [];
  for (const momentMs of MOMENTS_MS) {
    const spec = it.spec(["sleep", "1000"]);
    const running = it.runtime.run(spec, signal).then(
      () => "ran",
      (error: unknown) => (error instanceof RuntimeError ? error.code : String(error)),
    );
    const ours = () =>
      findProcesses((argv) => argv.includes(`--name=${spec.name}`) && argv.includes("--detach"));
    await waitFor(() => ours().length > 0, { what: "nerdctl runs", limitMs: 60_000 });
    await delay(momentMs);
    for (const { pid } of ours()) tryKill(pid);
    const outcome = await running;
    assert.ok(["ran", "UNAVAILABLE"].includes(outcome), outcome);

    const mine = async () => (await it.runtime.list(signal)).filter(({ name }) => name === spec.name);
    const found = await mine();
    assert.ok(found.length <= 1);
    if (found.length === 0) await it.runtime.run(spec, signal);
    else await assert.rejects(it.runtime.run(spec, signal), { code: "ALREADY_EXISTS" });
    const [one, ...others] = await mine();
    assert.ok(one && others.length === 0);
    outcomes.push(`${momentMs} ms: ${outcome}, ${found[0]?.state ?? "none"}`);
    await it.runtime.remove([one.id], signal);
    assert.deepEqual(await mine(), []);
  }
  t.diagnostic(outcomes.join("; "));
});

function tryKill(pid: number): void {
  try {
    kill(pid, "SIGKILL");
  } catch {
    // The process has just ended.
  }
}
