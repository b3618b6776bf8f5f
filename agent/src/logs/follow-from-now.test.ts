import assert from "node:assert/strict";
import { appendFileSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { type Clock, systemClock } from "../clock.ts";
import { LogRotator } from "./log-rotator.ts";

test("a follower that starts now gets the lines written while its position is determined", async (t) => {
  const path = join(mkdtempSync(join(tmpdir(), "forage-keeper-")), "a.log");
  t.after(() => rmSync(dirname(path), { recursive: true }));
  writeFileSync(path, "before\n");
  let isWritten = false;
  // The rotator reads this clock as soon as it has recorded the log's end.
  const monotonicMs = (): number => {
    if (!isWritten) appendFileSync(path, "meanwhile\n");
    isWritten = true;
    return systemClock.monotonicMs();
  };
  const clock: Clock = {
    monotonicMs,
    nowMs: () => systemClock.nowMs(),
    schedule: (...call) => systemClock.schedule(...call),
  };
  const ended = new AbortController();
  const reading = new LogRotator({ clock }).tail(path, {
    ...{ follow: true, signal: new AbortController().signal, ended: ended.signal },
    sinceMs: Date.now() + 60_000,
  });
  ended.abort();
  const pieces: Uint8Array[] = [];
  for await (const piece of reading) pieces.push(piece);
  assert.equal(Buffer.concat(pieces).toString(), "meanwhile\n");
});
