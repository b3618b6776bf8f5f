import assert from "node:assert/strict";
import { test } from "node:test";
import { systemdUnit } from "./service-unit.ts";

for (const [printed, state] of [
  ["active", "running"],
  ["activating", "starting"],
  ["deactivating", "starting"],
  ["failed", "stopped"],
  ["inactive", "stopped"],
] as const)
  test(`treats a unit in systemd's state ${printed} as ${state}`, async () => {
    const unit = systemdUnit("a.service", async () => `${printed}\n`);
    assert.equal(await unit.state(), state);
  });

test("stops and starts a unit by its name", async () => {
  const calls: string[] = [];
  const unit = systemdUnit("a.service", async (...words) => {
    calls.push(words.join(" "));
    return "";
  });
  await unit.stop();
  await unit.start();
  assert.deepEqual(calls, ["stop a.service", "start a.service"]);
});
