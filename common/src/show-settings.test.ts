import assert from "node:assert/strict";
import { test } from "node:test";
import { showSettings } from "./show-settings.ts";

interface Settings {
  readonly dataDir: string;
  readonly password?: string;
  readonly hook: string;
  readonly args: readonly string[];
  readonly labels: Readonly<Record<string, string>>;
  readonly classes: readonly { readonly id: string; readonly note?: string }[];
}

const MARKS = {
  dataDir: "shown",
  password: "left-out",
  hook: "origin",
  args: "left-out",
  labels: "shown",
  classes: { id: "shown", note: "left-out" },
} as const;

test("shows marked values and origins of URLs, and that others are set", () => {
  const settings: Settings = {
    ...{ dataDir: "/data", password: "canary", hook: "https://user:canary@hooks.example/canary" },
    ...{ args: ["canary", "canary"], labels: { zone: "a" } },
    classes: [{ id: "small" }, { id: "large", note: "canary" }],
  };
  assert.deepEqual(showSettings(settings, MARKS), {
    ...{ dataDir: "/data", password: "[left out]", hook: "https://hooks.example" },
    ...{ args: "2 left out", labels: { zone: "a" } },
    classes: [{ id: "small" }, { id: "large", note: "[left out]" }],
  });
});

test("leaves out a setting without a mark, and values whose form doesn't match the mark", () => {
  const settings = {
    ...aSetting(),
    hook: "no URL",
    added: { secret: "canary" },
    list: ["canary"],
    classes: "canary",
  };
  const shown = showSettings(settings as unknown as Settings, MARKS);
  assert.doesNotMatch(JSON.stringify(shown), /canary/);
  assert.deepEqual([shown.added, shown.list, shown.hook], ["[left out]", "1 left out", "[left out]"]);
});

function aSetting(): Settings {
  return { dataDir: "/data", hook: "https://hooks.example/", args: [], labels: {}, classes: [] };
}
