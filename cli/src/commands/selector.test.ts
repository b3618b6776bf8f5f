import assert from "node:assert/strict";
import { test } from "node:test";
import { parseSelector } from "./selector.ts";

const ALL: Readonly<Record<string, Record<string, string>>> = {
  web: { app: "web", tier: "front" },
  api: { app: "api", "shop.example/tier": "back" },
  bare: {},
  empty: { app: "" },
};

function chosen(...texts: string[]): string {
  const { equal, matches } = parseSelector("-l", texts);
  return Object.entries(ALL)
    .filter(([, labels]) => Object.entries(equal).every(([key, value]) => labels[key] === value))
    .filter(([, labels]) => matches(labels))
    .map(([name]) => name)
    .join();
}

test("selects like Kubernetes", () => {
  const cases: Readonly<Record<string, string>> = {
    "app=web": "web",
    "app==web": "web",
    "app = web": "web",
    "app=": "empty",
    "app!=web": "api,bare,empty",
    "app != web": "api,bare,empty",
    "app in (web)": "web",
    "app in (web, api)": "web,api",
    "app in(web,api),tier": "web",
    "app notin (web,api)": "bare,empty",
    "app in (web,)": "web,empty",
    app: "web,api,empty",
    "!app": "bare",
    "shop.example/tier": "api",
    "shop.example/tier=back,app=api": "api",
    "app=web,app=api": "",
    "app=web,app=web": "web",
    "app,!tier": "api,empty",
    toString: "",
  };
  for (const [text, expected] of Object.entries(cases)) assert.equal(chosen(text), expected, text);
  assert.equal(chosen("app", "app!=web"), "api,empty");
});

test("refuses an invalid selector, and describes the valid forms", () => {
  for (const text of [
    "",
    "app=web,",
    "=web",
    "!",
    "app>1",
    "app in web",
    "app in (a",
    "a b",
    "app=a=b",
    "app!web",
    "app=ü",
    "a/b/c=d",
    "!app=web",
    "app in ((a))",
    "app ~ web",
  ])
    assert.throws(
      () => parseSelector("--label", [text]),
      /^CliError: --label: ".*" (is not a selector such as|can't be|: ).*/s,
      text,
    );
});

test("leaves equality to the coordinator, and evaluates other conditions itself", () => {
  assert.deepEqual(parseSelector("-l", ["a=b,c==d"]).equal, { a: "b", c: "d" });
  assert.equal(parseSelector("-l", ["a=b,c==d"]).isEqualOnly, true);
  assert.equal(parseSelector("-l", ["a=b,c!=d"]).isEqualOnly, false);
  assert.deepEqual(parseSelector("-l", ["a=b,c!=d"]).equal, { a: "b" });
  assert.equal(parseSelector("-l", []).isEmpty, true);
});
