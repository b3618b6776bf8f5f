import assert from "node:assert/strict";
import { test } from "node:test";
import { CONFIG_SCHEMA } from "../config.ts";
import { shownConfig } from "./shown-config.ts";

test("a configuration is shown without arguments of workspaces and the paths of webhooks", () => {
  const config = CONFIG_SCHEMA.parse({
    dataDir: "/var/lib/forage",
    workspaces: { args: ["--password=canary"] },
    notifications: [
      { name: "ops", url: "https://hooks.example/canary?key=canary", secretFile: "/etc/forage/hook" },
    ],
  });
  const shown = JSON.stringify(shownConfig(config));
  assert.doesNotMatch(shown, /canary/);
  assert.match(shown, /"origin":"https:\/\/hooks\.example"/);
  assert.match(shown, /"secretFile":"\/etc\/forage\/hook"/);
  assert.match(shown, /"args":"1 left out"/);
});
