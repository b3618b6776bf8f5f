import assert from "node:assert/strict";
import { test } from "node:test";
import { PartGatherer } from "./part-gatherer.ts";

interface Words {
  readonly of: string;
  readonly words: readonly string[];
  readonly more: boolean;
}

test("returns a message with its last part, and undefined before", () => {
  const parts = aGatherer();
  assert.equal(parts.add(part(["a"], true)), undefined);
  assert.equal(parts.add(part(["b"], true)), undefined);
  assert.deepEqual(parts.add(part(["c"], false))?.words, ["a", "b", "c"]);
  assert.deepEqual(parts.add(part(["d"], false))?.words, ["d"], "the next message starts with nothing");
});

test("drops the parts of an earlier connection", () => {
  const parts = aGatherer();
  parts.add(part(["a"], true));
  parts.restart();
  assert.deepEqual(parts.add(part(["b"], false))?.words, ["b"]);
});

test("rejects parts that don't belong together", () => {
  const parts = aGatherer();
  parts.add(part(["a"], true));
  assert.throws(() => parts.add({ ...part(["b"], false), of: "another" }), {
    name: "LinkError",
    code: "PROTOCOL",
    message: "a text came in parts, and something else between them",
  });
});

test("rejects a message of more than 1,000 parts, and counts each message separately", () => {
  const parts = aGatherer();
  const addMany = (count: number) => {
    for (let at = 0; at < count; at++) parts.add(part([], true));
  };
  addMany(999);
  assert.notEqual(parts.add(part([], false)), undefined);
  addMany(1_000);
  assert.throws(() => parts.add(part([], false)), { message: "a text of more than 1000 parts" });
  parts.restart();
  assert.notEqual(parts.add(part([], false)), undefined);
});

function aGatherer(): PartGatherer<Words> {
  return new PartGatherer<Words>({
    noun: "a text",
    hasMore: ({ more }) => more,
    join: (begun, next) =>
      begun.of === next.of ? { ...next, words: [...begun.words, ...next.words] } : undefined,
  });
}

function part(words: readonly string[], more: boolean): Words {
  return { of: "one", words, more };
}
