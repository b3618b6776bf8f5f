import assert from "node:assert/strict";
import { test } from "node:test";
import { type PullState, RuntimeError } from "../runtime.ts";
import { SharedPulls } from "./shared-pulls.ts";

interface Begun {
  readonly reference: string;
  readonly signal: AbortSignal;
  readonly onProgress: (state: PullState) => void;
  readonly end: (error?: Error) => void;
}

function aRecorder() {
  const begun: Begun[] = [];
  const pulls = new SharedPulls(
    (reference, _credentials, onProgress, signal) =>
      new Promise((resolve, reject) => {
        begun.push({ reference, signal, onProgress, end: (error) => (error ? reject(error) : resolve()) });
      }),
  );
  return { begun, pulls };
}

const never = new AbortController().signal;
const isAborted = (error: unknown) => error instanceof RuntimeError && error.code === "ABORTED";

test("calls for the same image share one pull", async () => {
  const { begun, pulls } = aRecorder();
  const calls = ["a", "a", "b"].map((it) => pulls.pull(it, never));
  assert.deepEqual(
    begun.map((it) => it.reference),
    ["a", "b"],
  );
  for (const it of begun) it.end();
  await Promise.all(calls);
});

test("rejects all callers of a failed pull, and pulls again at the next call", async () => {
  const { begun, pulls } = aRecorder();
  const calls = [pulls.pull("a", never), pulls.pull("a", never)];
  begun[0]?.end(new Error("no"));
  for (const call of calls) await assert.rejects(call, /no/);
  const again = pulls.pull("a", never);
  begun[1]?.end();
  await again;
});

test("cancelling one caller keeps the pull for the others; cancelling the last one ends it", async () => {
  const { begun, pulls } = aRecorder();
  const [first, last] = [new AbortController(), new AbortController()];
  const left = pulls.pull("a", first.signal);
  const stayed = pulls.pull("a", last.signal);
  first.abort();
  await assert.rejects(left, isAborted);
  assert.equal(begun[0]?.signal.aborted, false);
  last.abort();
  await assert.rejects(stayed, isAborted);
  assert.equal(begun[0]?.signal.aborted, true);
  begun[0]?.end(new Error("killed"));
  const fresh = pulls.pull("a", never);
  assert.equal(begun.length, 2);
  begun[1]?.end();
  await fresh;
});

test("an aborted signal starts no pull", async () => {
  const { begun, pulls } = aRecorder();
  await assert.rejects(pulls.pull("a", AbortSignal.abort()), isAborted);
  assert.equal(begun.length, 0);
});

test("callers with different credentials don't share a pull, and all sharers receive its progress", async () => {
  const { begun, pulls } = aRecorder();
  const login = (password: string) => ({ server: "r.example", username: "u", password });
  const progress: string[] = [];
  const call = (name: string, ...passwords: string[]) =>
    pulls.pull("a", never, {
      credentials: passwords.map(login),
      onProgress: ({ layersDone }) => progress.push(`${name} ${layersDone}`),
    });
  const calls = [call("first", "x"), call("second", "x"), call("other", "y"), call("none")];
  assert.equal(begun.length, 3);
  begun[0]?.onProgress({ layersDone: 2, layers: 3, bytesDone: 1, bytesTotal: 2 });
  assert.deepEqual(progress, ["first 2", "second 2"]);
  for (const it of begun) it.end();
  await Promise.all(calls);
});
