import assert from "node:assert/strict";
import { statSync } from "node:fs";
import { after, before, test } from "node:test";
import { systemClock } from "../src/clock.ts";
import { LogFile } from "../src/logs/log-file.ts";
import { LogRotator } from "../src/logs/log-rotator.ts";
import { type NerdctlUnderTest, openNerdctl } from "./nerdctl-under-test.ts";

let it: NerdctlUnderTest;
before(async () => {
  it = await openNerdctl();
});
after(() => it?.close());

const COUNT = 2_000_000;

test("trimming loses no line of a container that writes at full speed", async ({ signal }) => {
  const spec = it.spec(["seq", "0", String(COUNT - 1)]);
  const file = new LogFile(spec.logFile);
  const { id } = await it.runtime.run(spec, signal);
  let trims = 0;
  let last = -1;
  while (last < COUNT - 1) {
    signal.throwIfAborted();
    const ended = (await it.runtime.inspect(id, signal))?.state === "exited";
    for (let i = 0; i < 20; i += 1) if ((await file.trim(1_000_000)) !== undefined) trims += 1;
    const text = (await file.read(Number.MIN_SAFE_INTEGER, 2 ** 40)).data.toString();
    const numbers = text.slice(0, text.lastIndexOf("\n")).split("\n").map(Number);
    for (let i = 1; i < numbers.length; i += 1) assert.equal(numbers[i], (numbers[i - 1] ?? 0) + 1);
    last = numbers.at(-1) ?? -1;
    if (ended && last < COUNT - 1 && trims === 0) assert.fail(`ended at ${last}`);
  }
  assert.ok(trims > 3, `${trims} trims`);
  await it.runtime.remove([id], signal);
});

test("logs of many containers stay within bounds, and a follower gets all lines of a slow one", async ({
  signal,
}) => {
  const keeper = new LogRotator({ clock: systemClock, maxBytes: 200_000, checkMs: 500 });
  const loud = it.spec(["yes", "y".repeat(99)]);
  const modest = it.spec([
    "sh",
    "-c",
    "i=0; while [ $i -lt 20000 ]; do echo $i; i=$((i+1)); done; sleep 1000",
  ]);
  keeper.keep(loud.logFile);
  keeper.keep(modest.logFile);
  const started = await Promise.all([it.runtime.run(loud, signal), it.runtime.run(modest, signal)]);
  let text = "";
  for await (const piece of keeper.tail(modest.logFile, { follow: true, signal })) {
    text += Buffer.from(piece).toString();
    if (text.endsWith("\n19999\n")) break;
  }
  assert.equal(text, Array.from({ length: 20_000 }, (_, i) => `${i}\n`).join(""));
  await it.runtime.stop(started[0].id, 0, signal);
  await keeper.check();
  const bytes = (path: string) => statSync(path).blocks * 512;
  assert.ok(bytes(loud.logFile) + bytes(`${loud.logFile}.1`) < 500_000);
  assert.match(await keeper.lastLines(loud.logFile, 2, 1_000), /^(y{99}\n)?y{99}\n/);
  for (const { logFile } of [loud, modest]) await keeper.remove(logFile);
  await keeper.close();
  await it.runtime.remove(
    started.map(({ id }) => id),
    signal,
  );
});
