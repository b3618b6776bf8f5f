import assert from "node:assert/strict";
import { test } from "node:test";
import { VirtualClock } from "@forage/common/virtual-clock";
import { orphanPod } from "./orphan-pod.ts";
import type { PodDependencies } from "./pod-dependencies.ts";
import { PodLoop } from "./pod-loop.ts";

test("a loop that is closed while it reports its pod's end is over", async () => {
  const clock = new VirtualClock();
  let loop: PodLoop | undefined;
  const dependencies = {
    clock,
    observer: { containersOf: () => [] },
    probes: { unwatch: () => undefined },
    events: { remembered: async () => undefined, changed: () => loop?.close(), stepped: () => undefined },
    restartLimits: { baseMs: 1, capMs: 1, goodRunMs: 1 },
  } as unknown as PodDependencies;
  loop = new PodLoop(dependencies, {
    pod: orphanPod("p"),
    goal: "remove",
    memory: { containers: {}, removed: true },
  });
  const { signal } = new AbortController();
  let isOver = false;
  void loop.run(signal, signal).then(() => {
    isOver = true;
  });
  await clock.run(1_000);
  assert.equal(isOver, true);
});
