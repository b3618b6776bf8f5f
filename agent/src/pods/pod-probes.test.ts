import assert from "node:assert/strict";
import { test } from "node:test";
import type { PodView } from "./decide/pod-view.ts";
import type { PodDependencies } from "./pod-dependencies.ts";
import { PodProbes } from "./pod-probes.ts";

const RUNNING = { phase: "started", containerId: "c1" };

test("probes a running container from the end of its post_start hook until it is stopped or closed", () => {
  const { probes, follow, watched } = start();
  for (const [what, memory, expected] of [
    ["its hook has not ended", RUNNING, []],
    ["its hook has ended", { ...RUNNING, postStart: "done" }, ["c1"]],
    ["it is being stopped", { ...RUNNING, postStart: "done", stop: { sinceMs: 1 } }, []],
    ["its hook ended and it is not stopped", { ...RUNNING, postStart: "done" }, ["c1"]],
    ["another container is the one that runs", { ...RUNNING, postStart: "done", containerId: "c0" }, []],
    ["it runs again", { ...RUNNING, postStart: "done" }, ["c1"]],
  ] as const) {
    follow(memory);
    assert.deepEqual([...watched], expected, what);
  }
  probes.close();
  assert.deepEqual([...watched], []);
});

function start() {
  const watched = new Set<string>();
  const dependencies = {
    probes: {
      watch: ({ id }: { id: string }) => {
        watched.add(id);
        return { started: true, ready: true };
      },
      unwatch: (id: string) => void watched.delete(id),
    },
  } as unknown as Pick<PodDependencies, "probes" | "runtime">;
  const probes = new PodProbes(dependencies);
  const follow = (memory: object): void =>
    probes.follow({
      goal: "run",
      pod: {
        uid: "p",
        restartPolicy: "Always",
        containers: [{ name: "main", probes: { readiness: {} }, hooks: { postStart: {} } }],
      },
      containers: [{ id: "c1", podUid: "p", container: "main", attempt: 1, state: "running" }],
      memory: { sandbox: { address: "10.0.0.1" }, containers: { main: memory } },
      ...{ underWay: new Set(), verdicts: new Map(), nowMs: 1 },
    } as unknown as PodView);
  return { probes, follow, watched };
}
