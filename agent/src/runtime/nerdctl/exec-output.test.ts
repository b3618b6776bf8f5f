import assert from "node:assert/strict";
import { test } from "node:test";
import { ExecOutput } from "./exec-output.ts";

function aSource() {
  const calls: string[] = [];
  return { calls, pause: () => calls.push("pause"), resume: () => calls.push("resume") };
}

test("delivers chunks in order and then ends", async () => {
  const output = new ExecOutput();
  output.push("stdout", Buffer.from("a"));
  output.push("stderr", Buffer.from("b"));
  output.push("stdout", Buffer.alloc(0));
  setImmediate(() => {
    output.push("stdout", Buffer.from("c"));
    output.end();
    output.push("stdout", Buffer.from("too late"));
  });
  const seen: string[] = [];
  for await (const { stream, data } of output) seen.push(`${stream}:${data}`);
  assert.deepEqual(seen, ["stdout:a", "stderr:b", "stdout:c"]);
});

test("a slow reader pauses the sources and later resumes them", async () => {
  const output = new ExecOutput();
  const source = aSource();
  output.attach([source]);
  for (let i = 0; i < 5; i += 1) output.push("stdout", Buffer.alloc(60_000));
  assert.deepEqual(source.calls, ["pause"]);
  const reader = output[Symbol.asyncIterator]();
  await reader.next();
  await reader.next();
  assert.deepEqual(source.calls, ["pause"]);
  await reader.next();
  assert.deepEqual(source.calls, ["pause", "resume"]);
});

test("a reader that stops early lets the sources finish", async () => {
  const output = new ExecOutput();
  const source = aSource();
  output.attach([source]);
  for (let i = 0; i < 9; i += 1) output.push("stdout", Buffer.alloc(60_000));
  for await (const _ of output) break;
  assert.deepEqual(source.calls, ["pause", "resume"]);
  for (let i = 0; i < 9; i += 1) output.push("stdout", Buffer.alloc(60_000));
  assert.deepEqual(source.calls, ["pause", "resume"]);
});
