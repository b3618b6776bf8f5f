import assert from "node:assert/strict";
import { test } from "node:test";
import { readPluginEnvironment } from "./plugin-environment.ts";

const COOKIE = {
  NOMAD_PLUGIN_MAGIC_COOKIE: "e4327c2e01eabfd75a8a67adb114fb34a757d57eee7728d857a8cec6e91a7255",
};

function portsOf(variables: Readonly<Record<string, string>>) {
  return readPluginEnvironment({ ...COOKIE, ...variables }).ports;
}

test("reads the range of ports, and has one of its own", () => {
  assert.deepEqual(portsOf({}), { min: 10_000, max: 25_000 });
  assert.deepEqual(portsOf({ PLUGIN_MIN_PORT: "1", PLUGIN_MAX_PORT: "65535" }), { min: 1, max: 65_535 });
  assert.deepEqual(portsOf({ PLUGIN_MIN_PORT: "30000" }), { min: 30_000, max: 30_000 });
});

test("rejects what is no port, and ranges without one", () => {
  for (const text of ["0", "65536", "many", "-1", "100000"])
    assert.throws(() => portsOf({ PLUGIN_MAX_PORT: text }), /PLUGIN_MAX_PORT is ".*"; it must be a port/);
  assert.throws(
    () => portsOf({ PLUGIN_MIN_PORT: "9", PLUGIN_MAX_PORT: "8" }),
    /\(9\) is greater than .* \(8\)/,
  );
});
