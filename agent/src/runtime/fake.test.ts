import assert from "node:assert/strict";
import { test } from "node:test";
import { testContainerLives } from "../../test/container-lives-contract.ts";
import { type RuntimeUnderTest, rejectsWith, testRuntime } from "../../test/runtime-contract.ts";
import { type Clock, systemClock } from "../clock.ts";
import { FakeRuntime } from "./fake.ts";
import { type ContainerSpec, RuntimeError } from "./runtime.ts";

const IMAGE = "localhost/app:1";
const never = new AbortController().signal;

function aFake(clock: Clock = systemClock): FakeRuntime {
  const runtime = new FakeRuntime({ clock, images: [IMAGE] });
  runtime.programs.set("stubborn", { ignoresStop: true });
  runtime.programs.set("fail", { exitCode: 7 });
  runtime.programs.set("missing", { startError: "no such program" });
  runtime.execs.set("say", { stdout: "out", stderr: "err", exitCode: 3 });
  runtime.execs.set("echo", { echoes: true });
  runtime.execs.set("sleep", { endless: true });
  runtime.registry.set("localhost/pulled:1", "ok");
  return runtime;
}

let names = 0;
const aSpec = (command: readonly string[]): ContainerSpec => {
  names += 1;
  const plain = {
    args: [],
    env: [],
    labels: {},
    binds: [],
    networkNamespace: "/run/netns/x",
    hostname: "h",
    logFile: "/dev/null",
  };
  return { name: `c${names}`, image: IMAGE, command, ...plain };
};

const shared = aFake();
const underTest = (): RuntimeUnderTest => ({
  runtime: shared,
  image: IMAGE,
  pullable: "localhost/pulled:1",
  unknownImage: "localhost/unknown:1",
  spec: aSpec,
  programs: { sleep: ["sleep"], stubborn: ["stubborn"], fail: ["fail"], missing: ["missing"] },
  execs: { say: ["say"], echo: ["echo"], sleep: ["sleep"], missing: ["missing"] },
});
testContainerLives("fake", underTest);
testRuntime("fake", underTest);

const boom = new RuntimeError("UNAVAILABLE", "boom", { retryable: true });

test("makes the next call fail before or after it takes effect", async () => {
  const runtime = aFake();
  runtime.faults.fail("run", boom);
  runtime.faults.fail("run", boom, { afterEffect: true });
  await rejectsWith("UNAVAILABLE", runtime.run(aSpec(["sleep"]), never));
  assert.equal(runtime.containers.length, 0);
  await rejectsWith("UNAVAILABLE", runtime.run(aSpec(["sleep"]), never));
  assert.equal(runtime.containers.length, 1);
  await runtime.run(aSpec(["sleep"]), never);
  assert.deepEqual(
    runtime.faults.calls.map((it) => it.method),
    ["run", "run", "run"],
  );
});

test("calls hang until their time-out or until their signal aborts", async () => {
  const due: (() => void)[] = [];
  const clock: Clock = {
    ...systemClock,
    schedule(_, run) {
      due.push(run);
      return () => {};
    },
  };
  const runtime = aFake(clock);
  const hanging = runtime.faults.hang("list", 5_000);
  const giveUp = new AbortController();
  const [timedOut, given] = [runtime.list(never), runtime.list(giveUp.signal)];
  giveUp.abort();
  await rejectsWith("ABORTED", given);
  for (const run of due) run();
  await rejectsWith("TIMEOUT", timedOut);
  hanging.release();
  assert.deepEqual(await runtime.list(never), []);
});

test("ends containers, kills them for memory and breaks the event source on request", async () => {
  const runtime = aFake();
  const events = runtime.events(never)[Symbol.asyncIterator]();
  assert.deepEqual((await events.next()).value, { type: "listening" });
  const { id } = await runtime.run(aSpec(["sleep"]), never);
  assert.equal((await events.next()).value?.type, "started");
  runtime.outOfMemory(id);
  assert.deepEqual((await events.next()).value, { type: "oom", containerId: id });
  assert.equal((await events.next()).value?.type, "exited");
  const quick = await runtime.run({ ...aSpec(["sleep"]), name: "quick" }, never);
  assert.equal((await events.next()).value?.type, "started");
  runtime.outOfMemory(quick.id, { silently: true });
  assert.equal((await events.next()).value?.type, "exited");
  assert.equal(await runtime.oomKills(quick.id), 1);
  runtime.breakEvents();
  await rejectsWith("UNAVAILABLE", events.next());
});

test("a pull returns the registry's scripted answer", async () => {
  const runtime = aFake();
  runtime.registry.set("localhost/secret:1", new RuntimeError("IMAGE_DENIED", "no", { retryable: false }));
  await rejectsWith("IMAGE_DENIED", runtime.pull("localhost/secret:1", never));
  assert.equal(await runtime.hasImage("localhost/secret:1", never), false);
});
