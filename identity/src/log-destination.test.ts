import assert from "node:assert/strict";
import { closeSync, openSync, writeSync } from "node:fs";
import { test } from "node:test";
import { pino } from "pino";
import { LogDestination } from "./log-destination.ts";

test("a fatal entry returns when the disk is full", (t) => {
  const full = openSync("/dev/full", "w");
  t.after(() => closeSync(full));
  const log = pino({}, new LogDestination((bytes) => writeSync(full, bytes)));
  log.fatal({ err: new Error("no space") }, "can't go on");
  log.info("after");
});

test("the number of dropped lines is reported once writes succeed again", () => {
  const { destination, state, text } = fake();
  destination.write("one\n");
  state.code = "ENOSPC";
  destination.write("two\n");
  destination.write("three\n");
  state.code = undefined;
  destination.write("four\n");
  destination.write("five\n");
  assert.match(text(), /^one\n\{[^\n]*"event":"log-lines-dropped","lines":2\}\nfour\nfive\n$/);
});

test("a partly written line is ended before the next one", () => {
  const { destination, state, text } = fake();
  state.room = 3;
  destination.write("abcdef\n");
  state.room = Number.POSITIVE_INFINITY;
  destination.write("next\n");
  assert.match(text(), /^abc\n\{[^\n]*"lines":1[^\n]*\}\nnext\n$/);
});

test("a full pipe is awaited once, and not again until it accepts a line", () => {
  const { destination, state } = fake();
  state.code = "EAGAIN";
  destination.write("one\n");
  const tries = state.tries;
  assert.ok(tries > 1);
  destination.write("two\n");
  assert.equal(state.tries, tries + 1);
});

function fake() {
  const state: { code: string | undefined; room: number; tries: number } = {
    code: undefined,
    room: Number.POSITIVE_INFINITY,
    tries: 0,
  };
  const written: string[] = [];
  const destination = new LogDestination((bytes) => {
    state.tries++;
    const code = state.room === 0 ? "ENOSPC" : state.code;
    if (code !== undefined) throw Object.assign(new Error(code), { code });
    const count = Math.min(bytes.length, state.room);
    state.room -= count;
    written.push(bytes.subarray(0, count).toString());
    return count;
  });
  return { destination, state, text: () => written.join("") };
}
