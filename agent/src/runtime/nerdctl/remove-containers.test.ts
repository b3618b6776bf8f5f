import assert from "node:assert/strict";
import { test } from "node:test";
import type { CallResult } from "./nerdctl-cli.ts";
import { removeContainers } from "./remove-containers.ts";

const PASSING = 'level=error msg="1 errors:\\nunknown container status unknown"';
const { signal } = new AbortController();

/** A nerdctl that gives the answers one after the other, then the last one. `calls` holds the ids of each call. */
function answering(...answers: readonly Partial<CallResult>[]) {
  const calls: (readonly string[])[] = [];
  const call = async (args: readonly string[]): Promise<CallResult> => {
    const answer = answers[Math.min(calls.length, answers.length - 1)];
    calls.push(args.slice(args.indexOf("--") + 1));
    return { stdout: "", stderr: "", ...answer };
  };
  return { calls, call };
}

test("removes a container whose status is unknown for a moment with the next call", async () => {
  const cli = answering({ stdout: "a\n", stderr: PASSING }, { stderr: PASSING }, { stdout: "b\n" });
  await removeContainers(cli, ["a", "b"], signal);
  assert.deepEqual(cli.calls, [["a", "b"], ["b"], ["b"]]);
});

test("fails if the status of a container stays unknown", async () => {
  const cli = answering({ stdout: "a\n", stderr: PASSING });
  const removing = removeContainers(cli, ["a", "b"], signal);
  await assert.rejects(removing, {
    code: "UNKNOWN",
    retryable: true,
    message: /^1 of 2 containers were not removed: .*status unknown/,
  });
  assert.equal(cli.calls.length, 10);
});

test("fails at once if nerdctl gives another reason", async () => {
  const cli = answering({ stderr: "device or resource busy" });
  await assert.rejects(removeContainers(cli, ["a"], signal), { message: /device or resource busy/ });
  assert.equal(cli.calls.length, 1);
});

test("counts a container that does not exist as removed", async () => {
  const cli = answering({ stderr: "no such container: a" });
  await removeContainers(cli, ["a"], signal);
  assert.equal(cli.calls.length, 1);
});
