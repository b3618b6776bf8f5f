import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { test } from "node:test";
import { linkSignals, streamWithLinkedSignal, withLinkedSignal } from "./link-signals.ts";

test("ended links leave no listeners on long-lived signals", () => {
  const lasting = new AbortController();
  for (let at = 0; at < 1_000; at++) {
    const own = new AbortController();
    const { unlink } = linkSignals(lasting.signal, own.signal);
    if (at % 2 === 0) own.abort();
    unlink();
  }
  assert.equal(getEventListeners(lasting.signal, "abort").length, 0);
  const kept = Object.getOwnPropertySymbols(lasting.signal)
    .map((symbol): unknown => Reflect.get(lasting.signal, symbol))
    .filter((value) => value instanceof Set && value.size > 0);
  assert.deepEqual(kept, []);
});

test("the linked signal aborts with the first signal and its reason, also if that was aborted before", () => {
  const [a, b] = [new AbortController(), new AbortController()];
  const linked = linkSignals(a.signal, b.signal);
  b.abort("b");
  a.abort("a");
  assert.equal(linked.signal.reason, "b");
  assert.equal(linkSignals(a.signal).signal.reason, "a");
  const ended = linkSignals(new AbortController().signal);
  ended.unlink();
  assert.equal(ended.signal.aborted, false);
});

test("work with linked signals leaves no listeners, whether it ends, fails or is not read to its end", async () => {
  const [lasting, own] = [new AbortController().signal, new AbortController().signal];
  const listeners = (): number => getEventListeners(lasting, "abort").length;
  assert.equal(await withLinkedSignal([lasting, own], async () => listeners()), 1);
  await assert.rejects(
    withLinkedSignal([lasting], async () => Promise.reject(new Error("failed"))),
    /failed/,
  );
  const numbers = streamWithLinkedSignal([lasting, own], async function* () {
    for (;;) yield listeners();
  });
  for await (const count of numbers) {
    assert.equal(count, 1);
    break;
  }
  assert.equal(listeners(), 0);
});
