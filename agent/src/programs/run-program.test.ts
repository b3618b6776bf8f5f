import assert from "node:assert/strict";
import { readdirSync, readlinkSync } from "node:fs";
import { test } from "node:test";
import { setImmediate } from "node:timers/promises";
import { type RunOptions, runProgram } from "./run-program.ts";

const ENV = { PATH: "/usr/bin:/bin" };

function sh(script: string, options: Partial<RunOptions> = {}) {
  return runProgram("sh", ["-c", script], { env: ENV, timeoutMs: 20_000, outputBytesMax: 1_000, ...options });
}

test("returns the output, the exit code and the signal of a program", async () => {
  const { stdout, stderr, exitCode } = await sh("echo out; echo grüße >&2; exit 3");
  assert.deepEqual({ stdout, stderr, exitCode }, { stdout: "out\n", stderr: "grüße\n", exitCode: 3 });
  const killed = await sh("kill -TERM $$");
  assert.deepEqual([killed.exitCode, killed.signal, killed.killedFor], [undefined, "SIGTERM", undefined]);
});

test("passes input, arguments and environment unchanged, and nothing of the agent's environment", async () => {
  const args = ["-c", 'cat; printf "%s\\n" "$@"; env | sort', "sh", "a b", "$HOME", ""];
  const options = { env: { ...ENV, GREETING: "hello; exit" }, input: "in\n", timeoutMs: 20_000 };
  const { stdout } = await runProgram("sh", args, { ...options, outputBytesMax: 1_000 });
  assert.match(stdout, /^in\na b\n\$HOME\n\n/);
  const names = [...stdout.matchAll(/^(\w+)=/gm)].map(([, name]) => name);
  assert.deepEqual(names, ["GREETING", "PATH", "PWD"]);
  assert.ok(stdout.includes("GREETING=hello; exit\n"));
});

test("without input the program reads an empty one, and it need not read its input", async () => {
  assert.equal((await sh("cat; echo end")).stdout, "end\n");
  const { exitCode } = await sh("exec 0<&-; exit 4", { input: "x".repeat(1_000_000) });
  assert.equal(exitCode, 4);
});

test("kills a program after its time limit, and returns its output until then", async () => {
  const { stdout, killedFor, signal } = await sh("trap '' TERM; echo begun; exec sleep 777", {
    timeoutMs: 300,
  });
  assert.deepEqual([stdout, killedFor, signal], ["begun\n", "timeout", "SIGKILL"]);
});

test("kills a program when the signal aborts, and starts none afterwards", async () => {
  const abort = new AbortController();
  const running = sh("echo $$ >&2; exec sleep 777", { signal: abort.signal });
  abort.abort();
  assert.equal((await running).killedFor, "cancelled");
  const { killedFor, stdout } = await sh("echo begun", { signal: abort.signal });
  assert.deepEqual([killedFor, stdout], ["cancelled", ""]);
});

test("kills a program that writes too much, and keeps the beginning of its output", async () => {
  const { stdout, killedFor } = await sh("exec yes", { outputBytesMax: 10 });
  assert.deepEqual([stdout, killedFor], ["y\ny\ny\ny\ny\n", "too-much-output"]);
});

test("reports programs that cannot be started", async () => {
  const run = (file: string, args: readonly string[]) =>
    runProgram(file, args, { env: ENV, timeoutMs: 20_000, outputBytesMax: 10 });
  const missing = await run("no-such-program", []);
  assert.deepEqual([missing.exitCode, missing.error?.code], [undefined, "ENOENT"]);
  assert.equal((await run("/etc/passwd", [])).error?.code, "EACCES");
  assert.equal((await run("true", ["x".repeat(4_000_000)])).error?.code, "E2BIG");
  assert.match((await run("true", ["a\0b"])).error?.message ?? "", /zero byte/);
});

test("abandons a program whose output another process keeps open after the kill", async () => {
  const { killedFor, stdout } = await sh("sleep 3 & echo begun; wait", {
    timeoutMs: 300,
    killPatienceMs: 100,
  });
  assert.deepEqual([killedFor, stdout], ["timeout", "begun\n"]);
});

test("leaves no file descriptors open", async () => {
  await sh("true");
  const before = new Set(openFiles());
  for (let i = 0; i < 5; i += 1) await sh("echo x", { input: "y" });
  const left = () => openFiles().filter((file) => !before.has(file));
  // Closing a descriptor may complete after the program was reported to have ended.
  const deadlineMs = performance.now() + 15_000;
  while (left().length > 0 && performance.now() < deadlineMs) await setImmediate();
  assert.deepEqual(left(), []);
});

/** Returns the descriptors of this process with their files, such as `21 socket:[4711]`. */
function openFiles(): string[] {
  return readdirSync("/proc/self/fd").flatMap((fd) => {
    try {
      return [`${fd} ${readlinkSync(`/proc/self/fd/${fd}`)}`];
    } catch (error) {
      // The descriptor of the listing itself is closed by now.
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
      throw error;
    }
  });
}
