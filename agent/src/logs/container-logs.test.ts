import assert from "node:assert/strict";
import { test } from "node:test";
import { ContainerLogs, type LogReadOptions } from "./container-logs.ts";
import type { LogRotator, RotatedTailOptions } from "./log-rotator.ts";

const LOG = { podUid: "p", container: "main", attempt: 2 };

for (const [what, options, isRunning, expected] of [
  ["all lines as they are by default", { follow: false }, true, { follow: false, timestamps: false }],
  ["times on request", { follow: false, timestamps: true }, true, { follow: false, timestamps: true }],
  [
    "a part of the lines",
    { follow: false, tailLines: 5, sinceMs: 7, stream: "stderr" },
    true,
    { follow: false, timestamps: false, lines: 5, sinceMs: 7, stream: "stderr" },
  ],
  ["the future lines of a run that continues", { follow: true }, true, { follow: true, timestamps: false }],
  ["what there is of a run that has ended", { follow: true }, false, { follow: false, timestamps: false }],
] as const satisfies readonly (readonly [string, LogReadOptions, boolean, object])[])
  test(`reads ${what}`, async () => {
    const { logs, asked } = someLogs(() => isRunning);
    for await (const _ of logs.read(LOG, options, new AbortController().signal));
    const { signal, ended, ...rest } = asked[0]?.options ?? {};
    assert.deepEqual([asked[0]?.path, rest], ["p/main/2", expected]);
    assert.ok(signal && ended);
  });

test("a follower ends with the run that it reads", async () => {
  let isRunning = true;
  const { logs, asked } = someLogs(() => isRunning);
  const reading = logs.read(LOG, { follow: true }, new AbortController().signal);
  await reading.next();
  logs.podChanged("p");
  isRunning = false;
  logs.podChanged("other");
  assert.equal(asked[0]?.options.ended?.aborted, false);
  logs.podChanged("p");
  assert.equal(asked[0]?.options.ended?.aborted, true);
});

function someLogs(isRunning: () => boolean) {
  const asked: { readonly path: string; readonly options: RotatedTailOptions }[] = [];
  const rotator = {
    async *tail(path: string, options: RotatedTailOptions) {
      asked.push({ path, options });
      yield Buffer.from("line");
      yield Buffer.from("another");
    },
  } as unknown as LogRotator;
  const pathOf = ({ podUid, container, attempt }: typeof LOG) => `${podUid}/${container}/${attempt}`;
  return { logs: new ContainerLogs({ rotator, pathOf, isRunning }), asked };
}
