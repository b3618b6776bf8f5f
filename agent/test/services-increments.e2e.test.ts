import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { randomOf } from "@forage/common/random";
import { ServiceState, ServiceUpdate } from "@forage/proto/forage/agent/v1/agent";
import { enterOwnNetwork, whyNoOwnNetwork } from "../../hack/lib/own-network.ts";
import { systemClock } from "../src/clock.ts";
import { runCommand } from "../src/network/run-command.ts";
import { KnownServices } from "../src/services/known-services.ts";
import { ServiceRules } from "../src/services/service-rules.ts";
import { FakeServiceTables } from "./fake-service-tables.ts";
import { TABLE, testServiceTables } from "./service-tables-contract.ts";

const obstacle = whyNoOwnNetwork();
if (obstacle === undefined) enterOwnNetwork();
const skip = obstacle ?? false;

const STEPS = 60;
const COMPARE_EVERY = 6;
const BRIDGE = "bridge0";
const NAMES = ["a", "b", "c", "d", "e", "f"];
const FAMILIES = [
  { family: "ip", podCidr: "10.64.0.0/16", gateway: "10.64.0.1", nodad: [] },
  { family: "ip6", podCidr: "fd64::/64", gateway: "fd64::1", nodad: ["nodad"] },
] as const;

for (const { family, podCidr, gateway, nodad } of FAMILIES) {
  test(`after any changes of services, the kernel's rules equal those of a new start: ${family}`, {
    skip,
    timeout: 300_000,
  }, async (t) => {
    const dir = mkdtempSync(join(tmpdir(), "forage-increments-"));
    const problems: string[] = [];
    const onProblem = (event: string, error: unknown): number => problems.push(`${event}: ${error}`);
    const services = await KnownServices.open({ dir, clock: systemClock, onError: () => undefined });
    const rulesIn = (table: string): ServiceRules =>
      new ServiceRules({
        services,
        viewpoint: { node: "n0", reach: [4, 6] },
        table,
        podCidr,
        gateway,
        bridge: BRIDGE,
        run: runCommand,
        onProblem,
      });
    const rules = rulesIn("changed");
    t.after(async () => {
      await rules.close();
      await services.close();
      rmSync(dir, { recursive: true });
      await runCommand("ip", ["link", "del", BRIDGE]);
    });
    await runCommand("ip", ["link", "add", BRIDGE, "type", "bridge"]);
    await runCommand("ip", [
      "address",
      "add",
      `${gateway}/${podCidr.split("/")[1]}`,
      "dev",
      BRIDGE,
      ...nodad,
    ]);
    await runCommand("ip", ["link", "set", BRIDGE, "up"]);
    await rules.start();
    let changed: ReadonlySet<string> = new Set();
    services.subscribe((keys) => {
      changed = keys;
    });
    const random = randomOf(11).next;
    for (let step = 1; step <= STEPS; step++) {
      services.apply(aChange(random));
      await rules.update(changed);
      assert.deepEqual(problems, [], `step ${step}`);
      if (step % COMPARE_EVERY !== 0) continue;
      const fresh = rulesIn("fresh");
      await fresh.start();
      assert.deepEqual(await listed(family, "changed"), await listed(family, "fresh"), `step ${step}`);
      await runCommand("nft", ["delete", "table", family, "fresh"]);
    }
  });
}

/** Returns an update in which some services are added, removed and changed at the same time. */
function aChange(random: () => number): ServiceUpdate {
  const below = (count: number): number => Math.floor(random() * count);
  const touched = NAMES.filter(() => random() < 0.4);
  const gone = touched.filter(() => random() < 0.25);
  const present = touched.filter((name) => !gone.includes(name));
  // Two services never have the same address. A service may get an address that another one has just released.
  const places = new Map(NAMES.map((name, index) => [name, index]));
  return ServiceUpdate.fromPartial({
    clusterDomain: "cluster.local",
    virtualIpRanges: ["10.96.0.0/16", "fd96::/112"],
    removals: gone.map((name) => ({ namespace: "shop", name })),
    upserts: present.map((name) => aService(name, places.get(name) ?? 0, below)),
  });
}

function aService(name: string, place: number, below: (count: number) => number): ServiceState {
  const moved = below(2) * NAMES.length + place;
  const ports = (["TCP", "UDP", "SCTP"] as const)
    .filter(() => below(3) > 0)
    .map((protocol, index) => ({
      name: protocol.toLowerCase(),
      port: 80 + below(2),
      protocol,
      targetPort: 8080,
      nodePort: below(2) * (30_000 + 10 * place + index),
    }));
  return ServiceState.fromPartial({
    namespace: "shop",
    name,
    type: "LoadBalancer",
    virtualIps: [`10.96.0.${moved}`, `fd96::${moved.toString(16)}`],
    loadBalancerIps: below(3) === 0 ? [`192.0.2.${moved}`, `2001:db8::${moved.toString(16)}`] : [],
    ports,
    affinitySeconds: [0, 0, 60, 90][below(4)] ?? 0,
    endpoints: Array.from({ length: below(4) }, () => {
      const pod = below(5);
      return {
        pod: `p${pod}`,
        node: `n${pod % 3}`,
        podIp: `10.64.0.${10 + pod}`,
        podIpv6: `fd64::${10 + pod}`,
        hostIp: `198.51.100.${pod}`,
        hostIpv6: `2001:db8:1::${pod}`,
        hostPorts: ports.map((_, index) => 21_000 + 10 * pod + index),
      };
    }),
  });
}

/** Returns the kernel's rules in an order that is independent of their history. */
async function listed(family: string, table: string): Promise<string[]> {
  const text = await runCommand("nft", ["list", "table", family, table]);
  const sorted = (whole: string, list: string): string =>
    list.includes("flags") ? whole : `{ ${list.split(",").map(trimmed).sort().join(", ")} }`;
  const flat = text.replaceAll(table, "TABLE").replace(/\{([^{};]*,[^{};]*)\}/g, sorted);
  return flat.split(/^\t}$/m).map(trimmed).sort();
}

function trimmed(text: string): string {
  return text.replace(/\s+/g, " ").trim();
}

testServiceTables(
  "the kernel",
  async (t) => {
    const lose = async (table: string): Promise<void> => {
      await runCommand("nft", ["-f", "-"], { input: `add table ip ${table}\ndelete table ip ${table}\n` });
    };
    t.after(() => lose(TABLE));
    return { run: runCommand, lose };
  },
  { skip },
);

testServiceTables("the fake", async () => {
  const kernel = new FakeServiceTables();
  return { run: kernel.run, lose: async () => kernel.reboot() };
});
