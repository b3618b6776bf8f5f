import assert from "node:assert/strict";
import { test } from "node:test";
import { LastSent } from "./last-sent.ts";

test("sends each change once, and an empty message once after the last, but never first", () => {
  const asked: string[] = [];
  const present: { message: string | undefined } = { message: undefined };
  const sent = new LastSent("a1", {
    read: (node) => {
      asked.push(node);
      return present.message;
    },
    nothing: "nothing",
    encode: (message) => Buffer.from(message),
  });
  const seen: (string | undefined)[] = [];
  for (const message of [undefined, "a", "a", "b", undefined, undefined, "b"]) {
    present.message = message;
    seen.push(sent.due());
  }
  assert.deepEqual(new Set(asked), new Set(["a1"]));
  assert.deepEqual(seen, [undefined, "a", undefined, "b", "nothing", undefined, "b"]);
});
