import assert from "node:assert/strict";
import { test } from "node:test";
import { Cni } from "./cni.ts";
import { instanceNames } from "./instance-names.ts";
import { parsePodCidr } from "./ipv4-cidr.ts";
import { NetworkError } from "./network.ts";
import { CommandFailed, type CommandOptions, type RunCommand } from "./run-command.ts";

const RESULT = JSON.stringify({
  cniVersion: "1.0.0",
  interfaces: [{ name: "fg-x" }, { name: "veth12" }, { name: "eth0", sandbox: "/run/netns/n" }],
  ips: [{ interface: 2, address: "10.64.0.2/16", gateway: "10.64.0.1" }],
});

test("add makes the bridge's link, and reads what it got", async () => {
  const calls: [string, CommandOptions | undefined][] = [];
  const cni = aCni(async (file, _, options) => {
    calls.push([file, options]);
    return RESULT;
  });
  assert.deepEqual(await cni.add("n"), { address: "10.64.0.2", hostInterface: "veth12" });
  assert.equal(calls.length, 1);
  assert.equal(calls[0]?.[0], "/plugins/bridge");
  assert.equal(calls[0]?.[1]?.env?.CNI_COMMAND, "ADD");
  assert.equal(calls[0]?.[1]?.env?.CNI_NETNS, "/run/netns/n");
  const config = JSON.parse(calls[0]?.[1]?.input ?? "");
  assert.equal(config.mtu, 1_400);
  assert.equal(config.hairpinMode, true);
  assert.deepEqual(config.ipam.ranges, [[{ subnet: "10.64.0.0/16", gateway: "10.64.0.1" }]]);
});

for (const [code, msg] of [
  [
    "NO_ADDRESS_LEFT",
    "failed to allocate for range 0: no IP addresses available in range set: 10.64.0.1-10.64.0.14",
  ],
  ["SETUP_FAILED", "failed to create bridge"],
] as const) {
  test(`a plugin's error becomes ${code}`, async () => {
    const cni = aCni(async (file) => {
      throw new CommandFailed(file, JSON.stringify({ cniVersion: "1.0.0", code: 11, msg }), "");
    });
    await assert.rejects(cni.add("n"), (error) => {
      assert.ok(error instanceof NetworkError);
      assert.equal(error.code, code);
      assert.ok(error.message.includes(msg));
      return true;
    });
  });
}

test("an answer without an address is an error", async () => {
  await assert.rejects(aCni(async () => "{}").add("n"), /answered \{\}/);
});

function aCni(run: RunCommand): Cni {
  return new Cni({
    names: instanceNames("x"),
    podCidr: parsePodCidr("10.64.0.0/16"),
    pluginDir: "/plugins",
    leaseDir: "/leases",
    mtu: 1_400,
    run,
  });
}
