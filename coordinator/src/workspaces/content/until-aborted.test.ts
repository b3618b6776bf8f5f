import assert from "node:assert/strict";
import { test } from "node:test";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { untilAborted } from "./until-aborted.ts";

const CHUNKS = 20;

test("keeps no reference to a chunk after passing it on", async () => {
  setFlagsFromString("--expose-gc");
  const collectGarbage = runInNewContext("gc") as () => void;
  const passed: WeakRef<Uint8Array>[] = [];
  async function* source(): AsyncGenerator<Uint8Array> {
    for (let index = 0; index < CHUNKS; index++) {
      const chunk = new Uint8Array(1_000);
      passed.push(new WeakRef(chunk));
      yield chunk;
    }
  }
  const chunks = untilAborted(source(), new AbortController().signal);
  for (let index = 0; index < CHUNKS; index++) await chunks.next();

  // A weakly referenced value is kept until the end of the current turn of the event loop.
  await new Promise((resolve) => setImmediate(resolve));
  collectGarbage();
  const held = passed.filter((chunk) => chunk.deref() !== undefined).length;
  assert.ok(held <= 1, `${held} of ${CHUNKS} chunks are held`);
  await chunks.return(undefined);
});

test("throws when the signal aborts while the source is silent", async () => {
  const abort = new AbortController();
  async function* silent(): AsyncGenerator<Uint8Array> {
    await new Promise(() => undefined);
  }
  const next = untilAborted(silent(), abort.signal).next();
  abort.abort();
  await assert.rejects(next, { code: "ABORTED" });
});
