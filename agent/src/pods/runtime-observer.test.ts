import assert from "node:assert/strict";
import { test } from "node:test";
import { VirtualClock } from "@forage/common/virtual-clock";
import type { RuntimeContainer, RuntimeEvent } from "../runtime/runtime.ts";
import { ATTEMPT_LABEL, CONTAINER_LABEL, POD_UID_LABEL, SPEC_HASH_LABEL } from "./container-name.ts";
import { RuntimeObserver } from "./runtime-observer.ts";

test("a list shows what there is; containers that are no pod's are left out", async () => {
  const dependencies = new World();
  dependencies.listed = [aContainer("a"), { ...aContainer("b"), labels: {} }];
  await dependencies.observer.refresh();
  assert.deepEqual(dependencies.ids(), ["a"]);
  assert.deepEqual(dependencies.observer.podUids(), ["p"]);
});

test("an end that is reported before its start is not lost", async () => {
  const dependencies = new World();
  await dependencies.tell({ type: "exited", containerId: "a", exitCode: 7, atMs: 5 });
  dependencies.start("a");
  const [seen] = dependencies.observer.containersOf("p");
  assert.deepEqual([seen?.state, seen?.exitCode, seen?.finishedAtMs], ["exited", 7, 5]);
});

test("an end that is reported while the start's answer is on its way is not lost either", async () => {
  const dependencies = new World();
  dependencies.listed = [aContainer("a")];
  await dependencies.observer.refresh();
  await dependencies.tell({ type: "exited", containerId: "a", exitCode: 7, atMs: 5 });
  dependencies.start("a");
  assert.equal(dependencies.observer.containersOf("p")[0]?.state, "exited");
});

test("a list that was begun before a start doesn't make the container vanish", async () => {
  const dependencies = new World();
  const listing = dependencies.slowRefresh();
  dependencies.start("a");
  await listing.finish([]);
  assert.deepEqual(dependencies.ids(), ["a"]);
});

test("a list that was begun before a removal doesn't bring the container back", async () => {
  const dependencies = new World();
  dependencies.start("a");
  const listing = dependencies.slowRefresh();
  dependencies.observer.noteRemoved(["a"]);
  await listing.finish([aContainer("a")]);
  assert.deepEqual(dependencies.ids(), []);
});

test("an end is final, whatever an older list says", async () => {
  const dependencies = new World();
  dependencies.start("a");
  await dependencies.tell({ type: "exited", containerId: "a", exitCode: 1, atMs: 5 });
  dependencies.listed = [aContainer("a")];
  await dependencies.observer.refresh();
  assert.equal(dependencies.observer.containersOf("p")[0]?.state, "exited");
});

test("an end is final, whatever start is reported after it", async () => {
  const dependencies = new World();
  dependencies.start("a");
  await dependencies.tell({ type: "exited", containerId: "a", exitCode: 1, atMs: 5 });

  await dependencies.tell({ type: "started", containerId: "a" });

  const [seen] = dependencies.observer.containersOf("p");
  assert.deepEqual([seen?.state, seen?.exitCode], ["exited", 1]);
});

test("a list repairs what events missed", async () => {
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

test("those who ask while a list is being read share the next one", async () => {
  const dependencies = new World();
  const first = dependencies.slowRefresh();
  const second = dependencies.observer.refresh();
  const third = dependencies.observer.refresh();
  await first.finish([]);
  await Promise.all([second, third]);
  assert.equal(dependencies.lists, 2);
});

test("a container that was stopped counts as ended before its end is reported", () => {
  const dependencies = new World();
  dependencies.start("a");
  dependencies.observer.noteStopped(["a", "unknown"]);
  const [seen] = dependencies.observer.containersOf("p");
  assert.deepEqual([seen?.state, seen?.exitCode], ["exited", undefined]);
});

test("since when a state is unknown is kept until it is known", async () => {
  const dependencies = new World();
  dependencies.listed = [{ ...aContainer("a"), state: "unknown" }];
  await dependencies.observer.refresh();
  dependencies.nowMs = 500;
  await dependencies.observer.refresh();
  assert.equal(dependencies.observer.containersOf("p")[0]?.unknownSinceMs, 0);
});

test("a kill for memory shows in the end that follows", async () => {
  const dependencies = new World();
  dependencies.start("a");
  await dependencies.tell({ type: "oom", containerId: "a" });
  await dependencies.tell({ type: "exited", containerId: "a", exitCode: 137, atMs: 5 });
  const [seen] = dependencies.observer.containersOf("p");
  assert.deepEqual([seen?.oomKilled, seen?.exitCode], [true, 137]);
});

test("a kill for memory is not forgotten when the start is noted after it", async () => {
  const dependencies = new World();
  dependencies.listed = [aContainer("a")];
  await dependencies.observer.refresh();
  await dependencies.tell({ type: "oom", containerId: "a" });
  dependencies.start("a");
  await dependencies.tell({ type: "exited", containerId: "a", exitCode: 137, atMs: 5 });
  assert.equal(dependencies.observer.containersOf("p")[0]?.oomKilled, true);
});

test("ends are noticed by lists while the event stream can't be had", async () => {
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

  async tell(event: RuntimeEvent): Promise<void> {
    this.#emit(event);
    await new Promise((resolve) => setImmediate(resolve));
  }

  /** A list that is answered when the test says so. */
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
