import assert from "node:assert/strict";
import { test } from "node:test";
import { randomOf } from "@forage/common/random";
import { IndexMap } from "./index-map.ts";

interface Item {
  readonly key: string;
  readonly groups: readonly string[];
}

test("finds values by key and by group, in the order of their addition", () => {
  const map = new IndexMap<Item>((item) => item.groups);
  assert.equal(map.set("a", item("a", "x", "y")), undefined);
  map.set("b", item("b", "x"));
  assert.equal(map.get("a")?.key, "a");
  assert.deepEqual(keys(map.group("x")), ["a", "b"]);
  assert.deepEqual(keys(map.group("y")), ["a"]);
  assert.deepEqual(map.group("z"), []);
  assert.equal(map.set("a", item("a", "z"))?.groups[0], "x");
  assert.deepEqual(keys(map.group("x")), ["b"]);
  assert.deepEqual(keys(map.group("z")), ["a"]);
  assert.equal(map.set("a", undefined)?.key, "a");
  assert.equal(map.set("a", undefined), undefined);
  assert.equal(map.size, 1);
});

test("a changed value keeps its position in its group", () => {
  const map = new IndexMap<Item>((value) => value.groups);
  for (const key of ["a", "b"]) map.set(key, item(key, "x"));
  map.set("a", item("a", "x", "y"));
  assert.deepEqual(keys(map.group("x")), ["a", "b"]);
});

test("finds a value by its identifier until the identifier changes or the value is removed", () => {
  const map = new IndexMap<Item>(undefined, ({ groups: [id] }) => id);
  map.set("a", item("a", "id-1"));
  map.set("b", item("b"));
  assert.equal(map.byId("id-1")?.key, "a");
  map.set("a", item("a", "id-2"));
  assert.equal(map.byId("id-1"), undefined);
  assert.equal(map.byId("id-2")?.key, "a");
  map.set("c", item("c", "id-2"));
  map.set("a", undefined);
  assert.equal(map.byId("id-2")?.key, "c", "the place of another value is not forgotten");
  map.set("c", undefined);
  assert.equal(map.byId("id-2"), undefined);
});

test("replace changes a value for its key, groups and identifier, and adds no new value", () => {
  const map = new IndexMap<Item>(
    (value) => value.groups,
    ({ key }) => key,
  );
  map.set("a", item("a", "x"));
  const after = item("a", "x");
  map.replace("a", after);
  map.replace("b", item("b", "x"));
  assert.equal(map.get("a"), after);
  assert.equal(map.byId("a"), after);
  assert.deepEqual(map.group("x"), [after]);
});

test("groups are correct after random sets and removals", () => {
  for (let seed = 0; seed < 50; seed++) {
    const random = randomOf(seed);
    const map = new IndexMap<Item>((value) => value.groups);
    const plain = new Map<string, Item>();
    for (let step = 0; step < 200; step++) {
      const key = `k${random.below(8)}`;
      const groups = ["x", "y", "z"].filter(() => random.chance(0.5));
      const value = random.chance(0.3) ? undefined : item(key, ...groups);
      assert.equal(map.set(key, value), plain.get(key));
      if (value === undefined) plain.delete(key);
      else plain.set(key, value);
      for (const group of ["x", "y", "z"]) {
        const expected = [...plain.values()].filter((v) => v.groups.includes(group));
        assert.deepEqual(keys(map.group(group)).sort(), keys(expected).sort());
      }
      assert.deepEqual(map.values(), [...plain.values()]);
    }
  }
});

function item(key: string, ...groups: readonly string[]): Item {
  return { key, groups };
}

function keys(items: Iterable<Item>): string[] {
  return [...items].map(({ key }) => key);
}
