import assert from "node:assert/strict";
import { test } from "node:test";
import { checkHostFeatures, type HostFeatures } from "./host-features.ts";

const EVERYTHING: HostFeatures = { appArmor: true, seLinux: true, cgroupVersion: 1, messageQueues: true };
const NOTHING: HostFeatures = { appArmor: false, seLinux: false, cgroupVersion: 2, messageQueues: false };
const OPTIONS = {
  appArmorProfile: "web",
  seLinuxType: "spc_t",
  memorySwappiness: 0,
  hostNamespaces: ["ipc"],
} as const;

test("rejects options that the host's kernel does not support, with every path and reason", () => {
  assert.doesNotThrow(() => checkHostFeatures(OPTIONS, [], EVERYTHING));
  assert.doesNotThrow(() => checkHostFeatures({ hostNamespaces: [] }, [], NOTHING));
  const refuse = () => checkHostFeatures(OPTIONS, ["/data"], NOTHING);
  for (const expected of [
    /config\.apparmor_profile: this host has no AppArmor/,
    /config\.selinux_opts: this host has no SELinux/,
    /config\.memory_swappiness: this host has cgroup v2/,
    /config\.ipc_mode: this host has no \/dev\/mqueue/,
    /mount "\/data": selinux_label: this host has no SELinux/,
  ])
    assert.throws(refuse, expected);
});

test("rejects relabelling of files even on a host with SELinux", () => {
  assert.throws(
    () => checkHostFeatures({ hostNamespaces: [] }, ["/data"], EVERYTHING),
    /selinux_label: the driver does not relabel/,
  );
});
