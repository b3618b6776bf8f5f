import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { SETTINGS } from "../src/settings.ts";
import { settingsPage } from "./support/settings-page.ts";

const text = (path: string): string => readFileSync(new URL(path, import.meta.url), "utf8");

test("the reference of agent.yaml is up to date: node agent/test/write-settings-reference.ts", () => {
  assert.equal(text("../../docs/reference/agent-settings.md"), settingsPage(text("../src/settings.ts")));
});

test("the reference has a value and a meaning for every setting", () => {
  const rows = new Map(
    settingsPage(text("../src/settings.ts"))
      .split("\n")
      .map((line) => line.split(" | "))
      .map(([key = "", value = "", , meaning = ""]) => [key.replace(/^\| /, ""), { value, meaning }]),
  );
  for (const { path, form } of SETTINGS) {
    const row = rows.get(`\`${path}\``);
    assert.ok(row !== undefined && form !== "", path);
    assert.ok(row.value !== "" && row.value !== "text", `${path}: its value`);
    assert.notEqual(row.meaning, "|", `${path}: its meaning`);
  }
});
