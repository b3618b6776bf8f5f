import assert from "node:assert/strict";
import { PassThrough } from "node:stream";
import { test } from "node:test";
import { systemClock } from "../../clock.ts";
import { type PullOptions, pullImage } from "./pull-image.ts";

test("abandons a pull that does not end even after SIGKILL", async () => {
  const signals: unknown[] = [];
  const child = {
    stdout: new PassThrough(),
    stderr: new PassThrough(),
    ended: new Promise(() => undefined),
    kill: (signal: unknown) => signals.push(signal),
  };
  const options = {
    cli: { spawn: () => child } as unknown as PullOptions["cli"],
    // All waits end at once.
    clock: { ...systemClock, schedule: (_: number, run: () => void) => systemClock.schedule(0, run) },
    stallMs: 1,
  };

  const pulled = pullImage(options, "docker.io/library/app:1", new AbortController().signal);

  await assert.rejects(pulled, { code: "TIMEOUT", retryable: true });
  assert.deepEqual(signals, ["SIGKILL"]);
});
