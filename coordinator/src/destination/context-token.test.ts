import assert from "node:assert/strict";
import { test } from "node:test";
import { readContextToken } from "./context-token.ts";

for (const [token, namespace, node, pod] of [
  ['{"ns":"shop","nodeName":"n1","pod":"web-1"}', "shop", "n1", "web-1"],
  ['{"ns":"shop"}', "shop", "", ""],
  ['{"ns":1,"nodeName":null,"pod":["x"],"more":{}}', "", "", ""],
  ["ns:shop", "shop", "", ""],
  ["", "", "", ""],
  ["{", "", "", ""],
  ["{}", "", "", ""],
  ["[]", "", "", ""],
  ["null", "", "", ""],
  ['"text"', "", "", ""],
  ["\u0000\uffff", "", "", ""],
  [`{"ns":"${"x".repeat(10_000)}"}`, "", "", ""],
  [`{"ns":"shop"${" ".repeat(4_083)}}`, "shop", "", ""],
  [`{"ns":"shop"${" ".repeat(4_084)}}`, "", "", ""],
  [`ns:${"x".repeat(10_000)}`, "", "", ""],
  [`ns:${"x".repeat(253)}`, "x".repeat(253), "", ""],
  [`ns:${"x".repeat(254)}`, "", "", ""],
  [`{"ns":"shop","nodeName":"${"x".repeat(254)}"}`, "shop", "", ""],
] as const) {
  test(`parses the token ${JSON.stringify(token).slice(0, 60)} of ${token.length} characters`, () =>
    assert.deepEqual(readContextToken(token), { namespace, node, pod }));
}
