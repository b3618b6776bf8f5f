import assert from "node:assert/strict";
import { PassThrough } from "node:stream";
import { test } from "node:test";
import { VirtualClock } from "@forage/common/virtual-clock";
import { streamEvents } from "./event-stream.ts";
import type { NerdctlCli } from "./nerdctl-cli.ts";

test("the first output shows that nerdctl has subscribed, and no further event is triggered", async () => {
  const [stdout, stderr] = [new PassThrough(), new PassThrough()];
  const clock = new VirtualClock();
  let knocks = 0;
  const killed: string[] = [];
  const cli = {
    spawn: () => ({
      ...{ stdout, stderr, ended: new Promise(() => {}) },
      kill: (signal: string) => void killed.push(signal),
    }),
    call: async () => {
      knocks++;
      if (knocks === 3) stdout.write('{"Topic":"/namespaces/update"}\n');
      return { stdout: "", stderr: "" };
    },
  } as unknown as NerdctlCli;
  const { signal } = new AbortController();
  const events = streamEvents({ cli, namespace: "forage", clock }, signal);
  const first = events.next();
  await clock.run(10_000);
  assert.deepEqual(await first, { value: { type: "listening" }, done: false });
  assert.equal(knocks, 3);
  stdout.write('{"Topic":"/namespaces/update"}\n');
  await new Promise(setImmediate);
  assert.deepEqual(await events.return(), { value: undefined, done: true });
  assert.deepEqual(killed, ["SIGKILL"]);
});
