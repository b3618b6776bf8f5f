import assert from "node:assert/strict";
import { test } from "node:test";
import { FingerprintResponse_HealthState as HealthState } from "@forage/proto/plugins/drivers/proto/driver";
import { readDriverOptions } from "../config/read-driver-options.ts";
import { decideHealth, type Observation } from "./driver-health.ts";

const OPTIONS = readDriverOptions(new Uint8Array());
const READY: Observation = { type: "ready", containerd: "v1.7.24", nerdctl: "2.1.6" };
const MISSING: Observation = { type: "missing", reason: "containerd has no socket" };

test("a healthy driver reports versions in the form that constraints expect", () => {
  const { state, description, attributes } = decideHealth(READY, OPTIONS, "0.1.0", false);
  assert.deepEqual({ state, description }, { state: HealthState.HEALTHY, description: "Healthy" });
  assert.deepEqual(attributes, {
    "driver.forage": true,
    "driver.forage.version": "0.1.0",
    "driver.forage.privileged.enabled": false,
    "driver.forage.volumes.enabled": false,
    "driver.forage.containerd_version": "1.7.24",
    "driver.forage.nerdctl_version": "2.1.6",
  });
});

test("a dependency that was never present makes the driver undetected, and one that disappeared makes it unhealthy", () => {
  assert.equal(decideHealth(MISSING, OPTIONS, "0.1.0", false).state, HealthState.UNDETECTED);
  const { state, description } = decideHealth(MISSING, OPTIONS, "0.1.0", true);
  assert.deepEqual(
    { state, description },
    { state: HealthState.UNHEALTHY, description: "containerd has no socket" },
  );
});

test("a disabled driver is undetected whatever the state of containerd", () => {
  const disabled = { ...OPTIONS, enabled: false };
  const { state, attributes } = decideHealth(READY, disabled, "0.1.0", true);
  assert.deepEqual({ state, attributes }, { state: HealthState.UNDETECTED, attributes: {} });
});
