import assert from "node:assert/strict";
import { test } from "node:test";
import { randomOf } from "@forage/common/random";
import { RouteMatch } from "@forage/proto/forest/v1/forage";
import { compareMatches, matchesEverything, matchKey, matchText, normalMatch } from "./match.ts";

type Given = Parameters<typeof RouteMatch.fromPartial>[0];
const match = (given: Given): RouteMatch => normalMatch(RouteMatch.fromPartial(given));
const header = (name: string) => ({ name, value: "1" });

/** Matches in order of precedence. */
const inOrder: readonly Given[] = [
  { path: { type: "Exact", value: "/shop/cart" }, method: "GET" },
  { path: { type: "Exact", value: "/shop/cart" } },
  { path: { type: "Exact", value: "/s" } },
  { path: { type: "RegularExpression", value: "/shop/.*" } },
  { path: { type: "RegularExpression", value: "/.*" } },
  { path: { value: "/shop/cart" } },
  { path: { value: "/shop" }, method: "GET", headers: [header("a"), header("b")] },
  { path: { value: "/shop" }, method: "GET", headers: [header("a")], queryParams: [header("q")] },
  { path: { value: "/shop" }, method: "GET" },
  { path: { value: "/shop" }, headers: [header("a"), header("b")] },
  { path: { value: "/shop" }, headers: [header("a")], queryParams: [header("q"), header("r")] },
  { path: { value: "/shop" }, headers: [header("a")], queryParams: [header("q")] },
  { path: { value: "/shop" }, headers: [header("a")] },
  { path: { value: "/shop" }, queryParams: [header("q")] },
  { path: { value: "/shop/" } },
  { method: "GET" },
  { headers: [header("a")] },
  { queryParams: [header("q")] },
  {},
];

test("sorts more specific matches first, as in the Gateway API", () => {
  const matches = inOrder.map(match);
  for (const [index, first] of matches.entries())
    for (const second of matches.slice(index + 1)) {
      assert.ok(compareMatches(first, second) < 0, `${matchText(first)} | ${matchText(second)}`);
      assert.ok(compareMatches(second, first) > 0);
    }
  const shuffled = randomOf(3).shuffled(matches).sort(compareMatches);
  assert.deepEqual(shuffled, matches);
});

test("treats equivalent matches as equal regardless of their spelling", () => {
  const same: readonly (readonly [Given, Given])[] = [
    [{}, { path: { type: "PathPrefix", value: "/" } }],
    [{}, { path: { type: "", value: "" } }],
    [{ path: { value: "/a" } }, { path: { type: "PathPrefix", value: "/a/" } }],
    [{ path: { type: "Exact", value: "" } }, { path: { type: "Exact", value: "/" } }],
    [{ headers: [{ name: "X-A", value: "1" }] }, { headers: [{ type: "Exact", name: "x-a", value: "1" }] }],
    [{ headers: [header("a"), header("b")] }, { headers: [header("b"), header("a")] }],
    [{ queryParams: [header("q"), header("r")] }, { queryParams: [header("r"), header("q")] }],
  ];
  for (const [a, b] of same) assert.equal(matchKey(match(a)), matchKey(match(b)), JSON.stringify(a));
  const different: readonly (readonly [Given, Given])[] = [
    [{ path: { value: "/a" } }, { path: { type: "Exact", value: "/a" } }],
    [{ path: { type: "Exact", value: "/a" } }, { path: { type: "Exact", value: "/a/" } }],
    [{ queryParams: [header("Q")] }, { queryParams: [header("q")] }],
    [{ headers: [header("a")] }, { queryParams: [header("a")] }],
    [{ method: "GET" }, { method: "get" }],
  ];
  for (const [a, b] of different) assert.notEqual(matchKey(match(a)), matchKey(match(b)), JSON.stringify(a));
});

test("matches everything only without conditions", () => {
  assert.deepEqual(
    inOrder.filter((given) => matchesEverything(match(given))),
    [{}],
  );
  assert.equal(matchText(match({})), "everything");
  const text = matchText(
    match({ path: { value: "/a" }, method: "GET", headers: [header("X-A")], queryParams: [header("q")] }),
  );
  assert.equal(text, "PathPrefix /a, GET, header x-a, query q");
});
