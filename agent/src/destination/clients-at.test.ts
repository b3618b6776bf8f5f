import assert from "node:assert/strict";
import { test } from "node:test";
import { clientsAt } from "./clients-at.ts";

test("an address belongs to its current pod, to the host (loopback), or to no client", () => {
  let monotonicMs = 0;
  let made = 0;
  let pods = [{ namespace: "shop", podIps: ["10.64.0.2", "fd64::2"], phase: "RUNNING" }];
  const clock = { nowMs: () => 0, monotonicMs: () => monotonicMs, schedule: () => () => {} };
  const at = clientsAt(() => {
    made += 1;
    return pods;
  }, clock);
  assert.deepEqual(at("10.64.0.2"), { address: "10.64.0.2", namespace: "shop" });
  assert.equal(at("fd64::2")?.namespace, "shop");
  assert.equal(at("10.64.0.3"), undefined);
  assert.deepEqual(at("127.0.0.1"), { address: "127.0.0.1", namespace: undefined });
  for (let i = 0; i < 100; i++) at("192.0.2.1");
  assert.equal(made, 1, "unknown addresses do not make the list again at once");
  pods = [
    { namespace: "shop", podIps: ["10.64.0.2"], phase: "REMOVED" },
    { namespace: "bank", podIps: ["10.64.0.3"], phase: "RUNNING" },
  ];
  monotonicMs = 100;
  assert.equal(at("10.64.0.3")?.namespace, "bank");
  assert.equal(at("10.64.0.2"), undefined);
});
