import assert from "node:assert/strict";
import { test } from "node:test";
import { Cni } from "./cni.ts";
import { instanceNames } from "./instance-names.ts";
import { NetworkError } from "./network.ts";
import { parsePodCidr, parsePodCidr6 } from "./pod-cidr.ts";
import { CommandFailed, type CommandOptions, type RunCommand } from "./run-command.ts";

const RESULT = JSON.stringify({
  cniVersion: "1.0.0",
  interfaces: [{ name: "fg-x" }, { name: "veth12" }, { name: "eth0", sandbox: "/run/netns/n" }],
  ips: [{ interface: 2, address: "10.64.0.2/16", gateway: "10.64.0.1" }],
});

test("add creates the bridge's link and parses the result", async () => {
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
  assert.deepEqual(config.ipam.routes, [{ dst: "0.0.0.0/0" }]);
});

test("with a second pod network there is an address of each family, in any order of the result", async () => {
  let config: { ipam?: object } = {};
  const answer = { ...JSON.parse(RESULT), ips: [{ address: "fd64::2/64" }, { address: "10.64.0.2/16" }] };
  const run: RunCommand = async (_file, _args, options) => {
    config = JSON.parse(options?.input ?? "");
    return JSON.stringify(answer);
  };
  const attachment = await aCni(run, "fd64::/64").add("n");
  assert.deepEqual(attachment, { address: "10.64.0.2", address6: "fd64::2", hostInterface: "veth12" });
  assert.deepEqual(config.ipam, {
    type: "host-local",
    ranges: [
      [{ subnet: "10.64.0.0/16", gateway: "10.64.0.1" }],
      [{ subnet: "fd64::/64", gateway: "fd64::1" }],
    ],
    routes: [{ dst: "0.0.0.0/0" }, { dst: "::/0" }],
    dataDir: "/leases",
  });
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

test("rejects a result without an address", async () => {
  await assert.rejects(aCni(async () => "{}").add("n"), /output of the bridge plugin: \{\}/);
});

function aCni(run: RunCommand, podCidr6?: string): Cni {
  return new Cni({
    names: instanceNames("x"),
    podCidr: parsePodCidr("10.64.0.0/16"),
    podCidr6: podCidr6 === undefined ? undefined : parsePodCidr6(podCidr6),
    pluginDir: "/plugins",
    leaseDir: "/leases",
    mtu: 1_400,
    run,
  });
}
