import assert from "node:assert/strict";
import { test } from "node:test";
import { VirtualClock } from "@forage/common/virtual-clock";
import type { RuntimeContainer, RuntimeEvent } from "../runtime/runtime.ts";
import { ATTEMPT_LABEL, CONTAINER_LABEL, POD_UID_LABEL, SPEC_HASH_LABEL } from "./container-name.ts";
import { RuntimeObserver } from "./runtime-observer.ts";

test("lists the containers of pods and leaves out all others", async () => {
  const dependencies = new World();
  dependencies.listed = [aContainer("a"), { ...aContainer("b"), labels: {} }];
  await dependencies.observer.refresh();
  assert.deepEqual(dependencies.ids(), ["a"]);
  assert.deepEqual(dependencies.observer.podUids(), ["p"]);
});

test("keeps an exit that is reported before its start", async () => {
  const dependencies = new World();
  await dependencies.publish({ type: "exited", containerId: "a", exitCode: 7, atMs: 5 });
  dependencies.start("a");
  const [seen] = dependencies.observer.containersOf("p");
  assert.deepEqual([seen?.state, seen?.exitCode, seen?.finishedAtMs], ["exited", 7, 5]);
});

test("keeps an exit that is reported while the start is in progress", async () => {
  const dependencies = new World();
  dependencies.listed = [aContainer("a")];
  await dependencies.observer.refresh();
  await dependencies.publish({ type: "exited", containerId: "a", exitCode: 7, atMs: 5 });
  dependencies.start("a");
  assert.equal(dependencies.observer.containersOf("p")[0]?.state, "exited");
});

test("a list requested before a start doesn't remove the new container", async () => {
  const dependencies = new World();
  const listing = dependencies.slowRefresh();
  dependencies.start("a");
  await listing.finish([]);
  assert.deepEqual(dependencies.ids(), ["a"]);
});

test("a list requested before a removal doesn't bring the container back", async () => {
  const dependencies = new World();
  dependencies.start("a");
  const listing = dependencies.slowRefresh();
  dependencies.observer.noteRemoved(["a"]);
  await listing.finish([aContainer("a")]);
  assert.deepEqual(dependencies.ids(), []);
});

test("an exit is final even if an older list shows the container running", async () => {
  const dependencies = new World();
  dependencies.start("a");
  await dependencies.publish({ type: "exited", containerId: "a", exitCode: 1, atMs: 5 });
  dependencies.listed = [aContainer("a")];
  await dependencies.observer.refresh();
  assert.equal(dependencies.observer.containersOf("p")[0]?.state, "exited");
});

test("an exit is final even if a start is reported after it", async () => {
  const dependencies = new World();
  dependencies.start("a");
  await dependencies.publish({ type: "exited", containerId: "a", exitCode: 1, atMs: 5 });

  await dependencies.publish({ type: "started", containerId: "a" });

  const [seen] = dependencies.observer.containersOf("p");
  assert.deepEqual([seen?.state, seen?.exitCode], ["exited", 1]);
});

test("a list corrects missed events", async () => {
  const dependencies = new World();
  dependencies.start("a");
  dependencies.start("b");
  dependencies.changes.length = 0;
  dependencies.listed = [{ ...aContainer("b"), state: "exited" }];
  await dependencies.observer.refresh();
  assert.deepEqual(dependencies.ids(), ["b"]);
  assert.equal(dependencies.observer.containersOf("p")[0]?.state, "exited");
  assert.deepEqual(dependencies.changes, ["p", "p"]);
});

test("calls during a listing share the next one", async () => {
  const dependencies = new World();
  const first = dependencies.slowRefresh();
  const second = dependencies.observer.refresh();
  const third = dependencies.observer.refresh();
  await first.finish([]);
  await Promise.all([second, third]);
  assert.equal(dependencies.lists, 2);
});

test("a stopped container counts as ended before its exit is reported", () => {
  const dependencies = new World();
  dependencies.start("a");
  dependencies.observer.noteStopped(["a", "unknown"]);
  const [seen] = dependencies.observer.containersOf("p");
  assert.deepEqual([seen?.state, seen?.exitCode], ["exited", undefined]);
});

test("keeps the time since when a state is unknown", async () => {
  const dependencies = new World();
  dependencies.listed = [{ ...aContainer("a"), state: "unknown" }];
  await dependencies.observer.refresh();
  dependencies.nowMs = 500;
  await dependencies.observer.refresh();
  assert.equal(dependencies.observer.containersOf("p")[0]?.unknownSinceMs, 0);
});

test("the exit after an OOM event is marked as an OOM kill", async () => {
  const dependencies = new World();
  dependencies.start("a");
  await dependencies.publish({ type: "oom", containerId: "a" });
  await dependencies.publish({ type: "exited", containerId: "a", exitCode: 137, atMs: 5 });
  const [seen] = dependencies.observer.containersOf("p");
  assert.deepEqual([seen?.oomKilled, seen?.exitCode], [true, 137]);
});

test("keeps an OOM event that is reported before the start", async () => {
  const dependencies = new World();
  dependencies.listed = [aContainer("a")];
  await dependencies.observer.refresh();
  await dependencies.publish({ type: "oom", containerId: "a" });
  dependencies.start("a");
  await dependencies.publish({ type: "exited", containerId: "a", exitCode: 137, atMs: 5 });
  assert.equal(dependencies.observer.containersOf("p")[0]?.oomKilled, true);
});

test("detects exits by listing while the event stream is unavailable", async () => {
  const clock = new VirtualClock();
  const stopping = new AbortController();
  const lists: number[] = [];
  const observer = new RuntimeObserver({
    runtime: {
      list: async () => {
        lists.push(clock.monotonicMs());
        return [];
      },
      events: () => {
        throw new Error("no stream");
      },
    },
    clock,
    random: () => 0.5,
    repairIntervalMs: 60_000,
    signal: stopping.signal,
    onChange: () => undefined,
    onListed: () => undefined,
    onEvents: () => undefined,
  });
  const running = observer.run();
  await clock.run(5_000);
  assert.equal(lists.length, 5, "once a second");
  stopping.abort();
  await running;
});

test("lists again soon after a listing has failed that another part requested", async () => {
  const clock = new VirtualClock();
  const startedMs = clock.monotonicMs();
  const stopping = new AbortController();
  const results: unknown[] = [];
  let fails = true;
  const observer = new RuntimeObserver({
    runtime: {
      list: () => (fails ? Promise.reject(new Error("unavailable")) : Promise.resolve([])),
      events: (signal) => listeningOnly(signal),
    },
    clock,
    random: () => 0.5,
    repairIntervalMs: 60_000,
    signal: stopping.signal,
    onChange: () => undefined,
    onListed: (error) => results.push([clock.monotonicMs() - startedMs, error !== undefined]),
    onEvents: () => undefined,
  });
  const running = observer.run();
  await clock.run(3_000);
  assert.deepEqual(results, [
    [0, true],
    [2_000, true],
  ]);
  fails = false;
  await clock.run(58_000);
  assert.deepEqual(results.slice(2), [[4_000, false]], "and then as usual");
  await clock.run(5_000);
  assert.deepEqual(results.slice(3), [[64_000, false]]);
  stopping.abort();
  await running;
});

/** Yields that the subscription is complete, and then no event until the signal aborts. */
async function* listeningOnly(signal: AbortSignal): AsyncGenerator<RuntimeEvent> {
  yield { type: "listening" };
  await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
}

class World {
  readonly observer: RuntimeObserver;
  readonly changes: string[] = [];
  listed: readonly RuntimeContainer[] = [];
  lists = 0;
  nowMs = 0;
  #answer: ((listed: readonly RuntimeContainer[]) => void) | undefined;
  #slow = false;
  #emit: (event: RuntimeEvent) => void = () => undefined;

  constructor() {
    const { signal } = new AbortController();
    const stream = () => this.#stream();
    this.observer = new RuntimeObserver({
      runtime: {
        list: () => this.#list(),
        events: () => ({ [Symbol.asyncIterator]: stream }),
      },
      clock: { nowMs: () => this.nowMs, monotonicMs: () => this.nowMs, schedule: () => () => undefined },
      random: () => 0.5,
      repairIntervalMs: 60_000,
      signal,
      onChange: (podUid) => this.changes.push(podUid),
      onListed: () => undefined,
      onEvents: () => undefined,
    });
    void this.observer.run();
  }

  ids(): readonly string[] {
    return this.observer.containersOf("p").map((it) => it.id);
  }

  start(id: string): void {
    const observed = { id, container: "main", attempt: 1, specHash: "h", state: "running" } as const;
    this.observer.noteStarted("p", "app:1", observed);
  }

  async publish(event: RuntimeEvent): Promise<void> {
    this.#emit(event);
    await new Promise((resolve) => setImmediate(resolve));
  }

  /** Starts a list that is answered when the test calls `finish`. */
  slowRefresh() {
    this.#slow = true;
    const done = this.observer.refresh();
    return {
      finish: async (listed: readonly RuntimeContainer[]) => {
        this.#slow = false;
        this.#answer?.(listed);
        await done;
      },
    };
  }

  #list(): Promise<readonly RuntimeContainer[]> {
    this.lists += 1;
    if (!this.#slow) return Promise.resolve(this.listed);
    return new Promise((resolve) => {
      this.#answer = resolve;
    });
  }

  async *#stream(): AsyncGenerator<RuntimeEvent> {
    const queue: RuntimeEvent[] = [];
    let wake: () => void = () => undefined;
    this.#emit = (event) => {
      queue.push(event);
      wake();
    };
    for (;;) {
      for (let event = queue.shift(); event !== undefined; event = queue.shift()) yield event;
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
    }
  }
}

function aContainer(id: string): RuntimeContainer {
  const labels = {
    [POD_UID_LABEL]: "p",
    [CONTAINER_LABEL]: "main",
    [ATTEMPT_LABEL]: "1",
    [SPEC_HASH_LABEL]: "h",
  };
  return { id, name: id, labels, image: "app:1", state: "running" };
}
