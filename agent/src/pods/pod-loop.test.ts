import assert from "node:assert/strict";
import { test } from "node:test";
import { VirtualClock } from "@forage/common/virtual-clock";
import { orphanPod } from "./orphan-pod.ts";
import type { Pod, PodMemory } from "./pod.ts";
import type { PodDependencies } from "./pod-dependencies.ts";
import { PodLoop } from "./pod-loop.ts";

test("a loop that is closed while it reports its pod's end finishes", async () => {
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

test("closing a loop stops the probes of its containers, which continue to run", async () => {
  const clock = new VirtualClock();
  const probed = new Set<string>();
  const container = { name: "main", image: "app", ports: [], probes: { readiness: {} } };
  let loop: PodLoop | undefined;
  const dependencies = {
    clock,
    observer: {
      containersOf: () => [
        { id: "c1", podUid: "p", container: "main", specHash: "", attempt: 1, state: "running" },
      ],
    },
    probes: {
      watch: ({ id }: { id: string }) => {
        probed.add(id);
        return { started: true, ready: true };
      },
      unwatch: (id: string) => void probed.delete(id),
    },
    images: { state: () => ({ type: "present" }) },
    events: { remembered: async () => true, changed: () => loop?.wake(), stepped: () => undefined },
    restartLimits: { baseMs: 1, capMs: 1, goodRunMs: 1 },
  } as unknown as PodDependencies;
  const pod = { ...orphanPod("p"), stopping: false, containers: [container] } as unknown as Pod;
  const main = { phase: "started", containerId: "c1", attempt: 1 };
  const memory = { sandbox: { podUid: "p", address: "10.0.0.1" }, ports: [], containers: { main } };
  loop = new PodLoop(dependencies, { pod, goal: "run", memory: memory as unknown as PodMemory });
  loop.portsTakenOver();
  const { signal } = new AbortController();
  let isOver = false;
  void loop.run(signal, signal).then(() => {
    isOver = true;
  });
  await clock.run(1_000);
  assert.deepEqual([...probed], ["c1"]);
  loop.close();
  await clock.run(1_000);
  assert.deepEqual([[...probed], isOver], [[], true]);
});
