import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { type RuntimeUnderTest, rejectsWith, runToEnd } from "./runtime-contract.ts";

/** An implementation of the contract. All tests may share it, and each uses its own containers. */
export interface LivesUnderTest
  extends Pick<RuntimeUnderTest, "runtime" | "image" | "pullable" | "unknownImage" | "spec"> {
  readonly programs: Pick<RuntimeUnderTest["programs"], "sleep" | "fail">;
}

const UNKNOWN_ID = "e".repeat(64);
// A failing test waits this long. The limit allows for busy machines.
const LIMIT_MS = 60_000;

/**
 * Tests the part of ContainerRuntime's contract that needs no real programs: the life cycles of containers and images.
 */
export function testContainerLives(name: string, open: (t: TestContext) => LivesUnderTest): void {
  const check = (what: string, run: (it: LivesUnderTest, signal: AbortSignal) => Promise<void>) =>
    test(`${name}: ${what}`, { timeout: LIMIT_MS }, (t) => run(open(t), t.signal));

  check("lists and inspects a started container as running", async (it, signal) => {
    const spec = { ...it.spec(it.programs.sleep), labels: { "forage.dev/pod-uid": "u1", note: "a,b=c" } };
    const { id } = await it.runtime.run(spec, signal);
    const listed = (await it.runtime.list(signal)).find((found) => found.id === id);
    const inspected = await it.runtime.inspect(id, signal);
    for (const found of [listed, inspected]) {
      assert.deepEqual([found?.name, found?.state, found?.image], [spec.name, "running", it.image]);
      assert.equal(found?.labels["forage.dev/pod-uid"], "u1");
      assert.equal(found?.labels.note, "a,b=c");
    }
    assert.ok((inspected?.startedAtMs ?? 0) > 0);
    await it.runtime.remove([id], signal);
  });

  check("reports the exit code of a container that ended by itself", async (it, signal) => {
    const { id, ended } = await runToEnd(it, it.programs.fail, signal);
    assert.equal(ended.exitCode, 7);
    const found = await it.runtime.inspect(id, signal);
    assert.deepEqual([found?.state, found?.exitCode], ["exited", 7]);
    assert.ok((found?.finishedAtMs ?? 0) >= (found?.startedAtMs ?? Number.POSITIVE_INFINITY));
    assert.equal((await it.runtime.list(signal)).find((other) => other.id === id)?.state, "exited");
    await it.runtime.remove([id], signal);
  });

  check("remove accepts running, ended and unknown containers in one call", async (it, signal) => {
    const { id: ended } = await runToEnd(it, it.programs.fail, signal);
    const { id: running } = await it.runtime.run(it.spec(it.programs.sleep), signal);
    await it.runtime.remove([ended, UNKNOWN_ID, running], signal);
    assert.equal(await it.runtime.inspect(ended, signal), undefined);
    assert.equal(await it.runtime.inspect(running, signal), undefined);
    const left = (await it.runtime.list(signal)).filter((found) => [ended, running].includes(found.id));
    assert.deepEqual(left, []);
    await it.runtime.remove([ended], signal);
    await it.runtime.remove([], signal);
  });

  check("a name is taken until its container is removed", async (it, signal) => {
    const spec = it.spec(it.programs.sleep);
    const { id } = await it.runtime.run(spec, signal);
    await rejectsWith("ALREADY_EXISTS", it.runtime.run(spec, signal));
    await it.runtime.remove([id], signal);
    const { id: again } = await it.runtime.run(spec, signal);
    await it.runtime.remove([again], signal);
  });

  check("one of two concurrent runs with the same name succeeds", async (it, signal) => {
    const spec = it.spec(it.programs.sleep);
    const results = await Promise.allSettled([it.runtime.run(spec, signal), it.runtime.run(spec, signal)]);
    const won = results.flatMap((result) => (result.status === "fulfilled" ? result.value.id : []));
    assert.equal(won.length, 1);
    assert.equal((await it.runtime.list(signal)).filter((found) => found.name === spec.name).length, 1);
    await it.runtime.remove(won, signal);
  });

  check("a stopped container has ended and keeps its name", async (it, signal) => {
    const spec = it.spec(it.programs.sleep);
    const { id } = await it.runtime.run(spec, signal);
    await it.runtime.stop(id, 50, signal);
    assert.equal((await it.runtime.inspect(id, signal))?.state, "exited");
    await rejectsWith("ALREADY_EXISTS", it.runtime.run(spec, signal));
    await it.runtime.stop(id, 50, signal);
    await it.runtime.stop(UNKNOWN_ID, 50, signal);
    await it.runtime.remove([id], signal);
  });

  check("an image is present after its pull, and containers run from it only then", async (it, signal) => {
    const spec = { ...it.spec(it.programs.sleep), image: it.pullable };
    assert.equal(await it.runtime.hasImage(it.image, signal), true);
    assert.equal(await it.runtime.hasImage(it.pullable, signal), false);
    await rejectsWith("IMAGE_NOT_FOUND", it.runtime.run(spec, signal));
    await Promise.all([it.runtime.pull(it.pullable, signal), it.runtime.pull(it.pullable, signal)]);
    assert.equal(await it.runtime.hasImage(it.pullable, signal), true);
    const images = await it.runtime.listImages(signal);
    assert.ok(images.includes(it.image) && images.includes(it.pullable));
    const { id } = await it.runtime.run(spec, signal);
    assert.equal(await it.runtime.removeImage(it.pullable, signal), "in-use");
    await it.runtime.remove([id], signal);
    assert.equal(await it.runtime.removeImage(it.pullable, signal), "removed");
    assert.equal(await it.runtime.removeImage(it.pullable, signal), "absent");
    await rejectsWith("IMAGE_NOT_FOUND", it.runtime.pull(it.unknownImage, signal));
  });

  check("events report a container's life cycle in order, beginning with `listening`", async (it, signal) => {
    const stop = new AbortController();
    const events = it.runtime.events(AbortSignal.any([signal, stop.signal]))[Symbol.asyncIterator]();
    assert.deepEqual((await events.next()).value, { type: "listening" });
    const { id } = await it.runtime.run(it.spec(it.programs.sleep), signal);
    await it.runtime.stop(id, 0, signal);
    await it.runtime.remove([id], signal);
    const seen: string[] = [];
    while (!seen.includes("removed")) {
      const { value } = await events.next();
      if (value && "containerId" in value && value.containerId === id) seen.push(value.type);
    }
    assert.deepEqual(seen, ["started", "exited", "removed"]);
    stop.abort();
    for (let next = await events.next(); !next.done; next = await events.next());
  });
}
