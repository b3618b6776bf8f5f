import assert from "node:assert/strict";
import { test } from "node:test";
import { exitCodeOf } from "./find-container.ts";
import type { ObservedContainer, Pod, PodMemory, Termination } from "./pod.ts";

const POD = { uid: "p1" } as Pod;
const LAST = { exitCode: 3 } as Termination;

function code(observed: readonly Partial<ObservedContainer>[], memory: object, attempt: number) {
  const containersOf = () =>
    observed.map((it) => ({ container: "main", ...it })) as unknown as readonly ObservedContainer[];
  const known = { pod: POD, memory: { containers: { main: memory } } as unknown as PodMemory };
  return exitCodeOf(known, { container: "main", attempt }, { containersOf });
}

test("finds the exit code of a run in the runtime, else in the memory of the latest termination", () => {
  const running = { phase: "started", attempt: 2, lastTermination: LAST };
  assert.equal(code([{ attempt: 2, state: "exited", exitCode: 7 }], running, 2), 7);
  assert.equal(code([{ attempt: 2, state: "running" }], running, 2), undefined);
  // Run 1 has ended and run 2 is running.
  assert.equal(code([{ attempt: 2, state: "running" }], running, 1), 3);
  assert.equal(code([], { phase: "ended", attempt: 2, lastTermination: LAST }, 2), 3);
  assert.equal(code([], { phase: "ended", attempt: 2, lastTermination: LAST }, 1), undefined);
  assert.equal(code([], { phase: "new", attempt: 0 }, 0), undefined);
});
