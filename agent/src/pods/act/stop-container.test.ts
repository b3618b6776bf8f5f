import assert from "node:assert/strict";
import { test } from "node:test";
import { VirtualClock } from "@forage/common/virtual-clock";
import type { PodView } from "../decide/pod-view.ts";
import type { Pod } from "../pod.ts";
import type { PodDependencies } from "../pod-dependencies.ts";
import type { StepContext } from "../step-context.ts";
import { stopContainer } from "./stop-container.ts";

test("a pre_stop hook uses up the grace period except for the last two seconds", async () => {
  assert.equal(await graceAfterHook(7_000), 23_000);
  assert.equal(await graceAfterHook(29_500), 2_000);
});

/** Returns how much of a grace period of 30 s is left for the stop signal after a hook of this duration. */
async function graceAfterHook(hookMs: number): Promise<number | undefined> {
  const clock = new VirtualClock();
  let graceMs: number | undefined;
  const dependencies = {
    clock,
    probes: { unwatch: () => undefined },
    hooks: {
      clock,
      run: async () => {
        await clock.sleep(hookMs);
        return { outcome: "success", message: "done" };
      },
    },
    runtime: {
      stop: async (_id: string, leftMs: number) => {
        graceMs = leftMs;
      },
    },
    observer: { noteStopped: () => undefined },
    events: { hookFailed: () => undefined },
  } as unknown as PodDependencies;
  const container = { name: "main", hooks: { preStop: { type: "exec", command: ["drain"] } } };
  const view = {
    pod: { uid: "p", containers: [container] } as unknown as Pod,
    memory: { sandbox: { address: "10.64.0.2" }, containers: {} },
    containers: [{ id: "c1", container: "main", state: "running" }],
  } as unknown as PodView;
  const context = { view, signal: new AbortController().signal, remember: async () => undefined };
  const step = { type: "stopContainer", container: "main", id: "c1", graceMs: 30_000 } as const;
  const stopped = stopContainer(dependencies, context as unknown as StepContext, step);
  await clock.run(hookMs);
  await stopped;
  return graceMs;
}
