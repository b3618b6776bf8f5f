import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { waitFor } from "../../../hack/lib/wait-for.ts";
import { ChildRunner } from "./run-child.ts";
import { VolumeError, type VolumeErrorCode } from "./volumes.ts";

test("exit codes and words are handed on", async () => {
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

test("nothing of the agent's environment reaches a child", async () => {
  process.env.FORAGE_CHILD_TEST = "x";
  assert.doesNotMatch(await new ChildRunner().must("env", []), /FORAGE_CHILD_TEST/);
});

test("a child that times out or is cancelled is killed, and the caller doesn't wait for it", async () => {
  const children = new ChildRunner();
  const abort = new AbortController();
  const late = children.run("sleep", ["60"], { timeoutMs: 50 });
  const unwanted = children.run("sleep", ["60"], { signal: abort.signal });
  abort.abort();
  await assert.rejects(unwanted, failsWith("ABORTED"));
  await assert.rejects(late, failsWith("UNAVAILABLE", "sleep: no end after 50 ms"));
  await assert.rejects(children.run("true", [], { signal: abort.signal }), failsWith("ABORTED"));
});

test("a child ends with an agent that is killed", async () => {
  const module = join(import.meta.dirname, "run-child.ts");
  const script = `import { ChildRunner } from ${JSON.stringify(module)}; await new ChildRunner().run("sleep", ["86399"]);`;
  const agent = spawn(process.execPath, ["--input-type=module", "-e", script], { stdio: "ignore" });
  const children = (): string[] => {
    const path = `/proc/${agent.pid}/task/${agent.pid}/children`;
    return readFileSync(path, "utf8").split(" ").filter(Boolean);
  };
  const isSleeping = (pid: string): boolean =>
    existsSync(`/proc/${pid}/cmdline`) && readFileSync(`/proc/${pid}/cmdline`, "utf8") === "sleep\x0086399\0";
  const pid = await waitFor(() => children().find(isSleeping), { what: "the child runs", limitMs: 60_000 });
  agent.kill("SIGKILL");
  await waitFor(() => !isSleeping(pid), { what: "the child has ended", limitMs: 60_000 });
});

test("output is bounded, and what a daemon holds open isn't waited for", async () => {
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
