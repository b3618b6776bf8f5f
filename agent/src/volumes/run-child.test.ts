import assert from "node:assert/strict";
import { test } from "node:test";
import { ChildRunner } from "./run-child.ts";
import { VolumeError, type VolumeErrorCode } from "./volumes.ts";

test("returns exit codes and output", async () => {
  const children = new ChildRunner();
  const result = await children.run("sh", ["-c", "echo out; echo err >&2; exit 3"]);
  assert.deepEqual(result, { exitCode: 3, stdout: "out\n", stderr: "err\n" });
  assert.equal(await children.must("printf", ["%s", "-x"]), "-x");
  await assert.rejects(
    children.must("sh", ["-c", "echo no; echo such >&2; exit 1"]),
    failsWith("HOST_FAILED", "sh: such"),
  );
  await assert.rejects(children.run("forage-no-such-program", []), failsWith("HOST_FAILED"));
});

test("the agent's environment is not passed to a child", async () => {
  process.env.FORAGE_CHILD_TEST = "x";
  assert.doesNotMatch(await new ChildRunner().must("env", []), /FORAGE_CHILD_TEST/);
});

test("kills a child that times out or is cancelled, without waiting for it", async () => {
  const children = new ChildRunner();
  const abort = new AbortController();
  const late = children.run("sleep", ["60"], { timeoutMs: 50 });
  const cancelled = children.run("sleep", ["60"], { signal: abort.signal });
  abort.abort();
  await assert.rejects(cancelled, failsWith("ABORTED"));
  await assert.rejects(late, failsWith("UNAVAILABLE", "sleep: did not end within 50 ms"));
  await assert.rejects(children.run("true", [], { signal: abort.signal }), failsWith("ABORTED"));
});

test("bounds output, and does not wait for a daemon that holds it open", async () => {
  const children = new ChildRunner();
  const { stdout } = await children.run("sh", ["-c", "head -c 1000000 /dev/zero | tr '\\0' x"]);
  assert.equal(stdout.length, 64 * 1024);
  const beganMs = performance.now();
  await children.must("sh", ["-c", "sleep 60 & echo started"]);
  assert.ok(performance.now() - beganMs < 50_000);
});

function failsWith(code: VolumeErrorCode, message?: string): (error: unknown) => boolean {
  return (error) =>
    error instanceof VolumeError &&
    error.code === code &&
    (message === undefined || error.message === message);
}
