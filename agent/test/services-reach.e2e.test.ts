import assert from "node:assert/strict";
import { test } from "node:test";
import type { IpFamily } from "@forage/common/ip";
import { enterOwnNetwork, whyNoOwnIpv6, whyNoOwnNetwork } from "../../hack/lib/own-network.ts";
import { FAMILY_WORDS } from "../src/network/family-words.ts";
import { instanceNames } from "../src/network/instance-names.ts";
import { runCommand } from "../src/network/run-command.ts";
import { ask } from "./ask.ts";
import { askFrom } from "./host-under-test.ts";
import {
  NODE_PORT,
  nameOf,
  OUTSIDE_PORT,
  PLACES,
  type Scene,
  type SceneAddresses,
  setUpScene,
  who,
} from "./services-scene.ts";
import { until } from "./until.ts";

const obstacle = whyNoOwnNetwork();
if (obstacle === undefined) enterOwnNetwork();
let hosts = 0;

for (const [family, why] of [
  [4, obstacle],
  [6, whyNoOwnIpv6()],
] as const) {
  const places = PLACES[family];
  const limit = { skip: why ?? false, timeout: 120_000 };
  const check: Check = (what, run) =>
    test(`IPv${family}: ${what}`, limit, async (t) => run(await setUpScene(t, hosts++, places), places));
  testWays(check);
  testRefusals(check);
  testChoice(check);
  testChanges(check);
}

type Check = (what: string, run: (scene: Scene, places: SceneAddresses) => Promise<void>) => void;

function testWays(check: Check): void {
  check(
    "a virtual IP leads pods and the host to pods of the same host and of others, and pods to themselves",
    async ({ set, endpoints, a, outside, problems }, { virtualIp, ...places }) => {
      for (const name of ["a", "b", "far"] as const) {
        await set({ endpoints: [endpoints[name]] });
        for (const protocol of ["TCP", "UDP"] as const) {
          assert.equal(who(await ask(protocol, virtualIp, 80)), name, `the host, ${protocol}`);
          assert.equal(who(await askFrom(nameOf(a), protocol, virtualIp, 80)), name, `a pod, ${protocol}`);
        }
      }
      await runCommand("ip", ["-n", outside, "route", "add", places.range, "via", places.host]);
      await set({ endpoints: [endpoints.a] });
      const answer = await askFrom(outside, "TCP", virtualIp, 80);
      assert.equal(answer, `a ${places.outside}`, "its own address is seen");
      assert.deepEqual(problems, []);
    },
  );

  check(
    "a node port leads everyone to the pods, and shows local pods who asks",
    async ({ set, endpoints, outside, a }, { family, host, outside: client, loopback }) => {
      for (const protocol of ["TCP", "UDP"] as const) {
        await set({ endpoints: [endpoints.b] });
        assert.equal(await askFrom(outside, protocol, host, NODE_PORT), `b ${client}`);
        assert.equal(who(await ask(protocol, host, NODE_PORT)), "b");
        // The kernel lets no packet from IPv6's single loopback address leave its link.
        assert.equal(who(await ask(protocol, loopback, NODE_PORT)), family === 4 ? "b" : "refused");
        assert.equal(who(await askFrom(nameOf(a), protocol, host, NODE_PORT)), "b");
        await set({ endpoints: [endpoints.far] });
        assert.equal(await askFrom(outside, protocol, host, NODE_PORT), `far ${host}`);
      }
    },
  );

  check(
    "pods of hosts that can't be reached are left to their own host",
    async ({ set, endpoints }, { virtualIp }) => {
      await set({ endpoints: [{ ...endpoints.far, local: true }] });
      assert.equal(await ask("TCP", virtualIp, 80), "refused");
    },
  );
}

function testRefusals(check: Check): void {
  check(
    "refuses connections at once to a service without endpoints and to an address of no service",
    async ({ set, endpoints, a }, { family, virtualIp, unusedVirtualIp }) => {
      await set({ endpoints: [endpoints.a] });
      await set({ endpoints: [] });
      for (const address of [virtualIp, unusedVirtualIp]) {
        assert.equal(await ask("TCP", address, 80), "refused");
        assert.equal(await askFrom(nameOf(a), "TCP", address, 80), "refused");
        assert.equal(await askFrom(nameOf(a), "UDP", address, 80), "refused");
        assert.equal(await ask("UDP", address, 80), "EPERM", "the host's own socket fails as it sends");
      }
      // The kernel limits the rate of ICMP messages to a host. Redirects must not use it up.
      assert.equal(await redirectsSeen(nameOf(a), family), 0);
      await set({ endpoints: [endpoints.a] });
      assert.equal(await ask("TCP", virtualIp, 81), "refused", "another port of it");
      await set();
      assert.equal(await ask("TCP", virtualIp, 80), "refused");
    },
  );

  check(
    "a service is refused by the family that none of its pods has",
    async ({ set, endpoints: { a } }, { family, virtualIp }) => {
      const { podIp: _, podIpv6: __, ...rest } = a;
      await set({
        endpoints: [{ ...rest, ...(family === 4 ? { podIpv6: "fd64::99" } : { podIp: "10.64.0.99" }) }],
      });
      assert.equal(await ask("TCP", virtualIp, 80), "refused");
    },
  );
}

function testChoice(check: Check): void {
  check(
    "connections are shared out evenly; with affinity a client stays, until its pod goes",
    async ({ set, endpoints }, { family, virtualIp }) => {
      const { ip, addressType } = FAMILY_WORDS[family];
      const { a, b } = endpoints;
      const asked = async (times: number): Promise<string[]> => {
        const answers: string[] = [];
        for (let i = 0; i < times; i++) answers.push(who(await ask("TCP", virtualIp, 80)));
        return answers;
      };
      await set({ endpoints: [a, b] });
      const counts = Object.groupBy(await asked(60), (name) => name);
      // Once in 10⁹ runs, one of two gets fewer than 8 of 60.
      assert.ok((counts.a?.length ?? 0) >= 8 && (counts.b?.length ?? 0) >= 8, JSON.stringify(counts));
      await set({ endpoints: [a, b], affinitySeconds: 100 });
      const [first = ""] = await asked(1);
      assert.deepEqual(new Set(await asked(12)), new Set([first]));
      const sets = await runCommand("nft", ["list", "sets", ip]);
      // The kernel bounds sets without a size, and allocates no memory in advance.
      const bounded = new RegExp(`set aff_\\w+ \\{\\s+type ${addressType}\\s+size 65535`, "g");
      assert.equal(sets.match(bounded)?.length, 4, sets);
      // With another endpoint, clients that have one keep it.
      await set({ endpoints: [a, b, endpoints.far], affinitySeconds: 100 });
      assert.deepEqual(new Set(await asked(12)), new Set([first]));
      const other = first === "a" ? "b" : "a";
      await set({ endpoints: [endpoints[other]], affinitySeconds: 100 });
      assert.deepEqual(new Set(await asked(6)), new Set([other]));
    },
  );

  check(
    "a UDP client that never pauses is led on when its pod goes",
    async ({ set, endpoints }, { virtualIp }) => {
      await set({ endpoints: [endpoints.a] });
      const from = { udpPort: 40_001 };
      assert.equal(who(await ask("UDP", virtualIp, 80, from)), "a");
      await set({ endpoints: [endpoints.b] });
      assert.equal(who(await ask("UDP", virtualIp, 80, from)), "b");
    },
  );

  check(
    "a TCP client whose pod doesn't answer is led on when that is no endpoint any more",
    async ({ set, endpoints, outside }, { family, virtualIp }) => {
      const { ip, conntrack } = FAMILY_WORDS[family];
      const silent = `table ${ip} silent { chain in { type filter hook input priority 0; tcp dport ${OUTSIDE_PORT} drop; }; }\n`;
      await runCommand("ip", ["netns", "exec", outside, "nft", "-f", "-"], { input: silent });
      await set({ endpoints: [endpoints.far] });
      const answer = ask("TCP", virtualIp, 80);
      const knocking = ["-L", "-f", conntrack, "-p", "tcp", "--state", "SYN_SENT", "--orig-dst", virtualIp];
      await until("it knocks", async () => (await runCommand("conntrack", knocking)).includes("SYN_SENT"));
      await set({ endpoints: [endpoints.a] });
      assert.equal(who(await answer), "a");
    },
  );
}

function testChanges(check: Check): void {
  check(
    "changes by others are mended, and a new start takes the table over without a gap",
    async ({ set, endpoints, rules, host, problems }, { family, virtualIp, otherVirtualIp, range }) => {
      const { servicesTable } = instanceNames(host.instance);
      const { ip } = FAMILY_WORDS[family];
      await set({ endpoints: [endpoints.a] });
      assert.equal(await rules.repair(), false);
      await runCommand("nft", ["delete", "table", ip, servicesTable]);
      await runCommand("ip", [`-${family}`, "route", "del", range]);
      assert.equal(await rules.repair(), true);
      assert.equal(who(await ask("TCP", virtualIp, 80)), "a");
      await runCommand("nft", ["flush", "map", ip, servicesTable, "addresses"]);
      await set({ endpoints: [endpoints.b], virtualIps: [otherVirtualIp] });
      assert.equal(who(await ask("TCP", otherVirtualIp, 80)), "b");
      assert.equal(problems.length, 1, "the table was created again");
    },
  );

  check(
    "which client stays with which pod outlives the agent, unless services changed while it was away",
    async ({ set, endpoints, restarted }, { family, virtualIp }) => {
      const remembered = async (): Promise<number> => {
        const sets = await runCommand("nft", ["list", "sets", FAMILY_WORDS[family].ip]);
        return sets.match(/ expires /g)?.length ?? 0;
      };
      const { a, b } = endpoints;
      await set({ endpoints: [a, b], affinitySeconds: 1_000 });
      assert.match(await ask("TCP", virtualIp, 80), /^[ab] /);
      assert.equal(await remembered(), 1);
      await restarted();
      assert.equal(await remembered(), 1);
      await set({ endpoints: [b], affinitySeconds: 1_000 });
      await restarted();
      assert.equal(await remembered(), 0);
      assert.equal(who(await ask("TCP", virtualIp, 80)), "b");
    },
  );

  check(
    "two services that have one address for a moment don't hold up all others",
    async ({ set, endpoints, problems }, { virtualIp }) => {
      await set({ endpoints: [endpoints.a] }, { name: "other", endpoints: [endpoints.b] });
      assert.equal(who(await ask("TCP", virtualIp, 80)), "a");
      await set({ name: "other", endpoints: [endpoints.b] });
      assert.equal(who(await ask("TCP", virtualIp, 80)), "b");
      assert.deepEqual(problems, []);
    },
  );
}

async function redirectsSeen(namespace: string, family: IpFamily): Promise<number> {
  const cat = (name: string): Promise<string> =>
    runCommand("ip", ["netns", "exec", namespace, "cat", `/proc/net/${name}`]);
  if (family === 6) return Number(/^Icmp6InRedirects\s+(\d+)$/m.exec(await cat("snmp6"))?.[1]);
  const [names = [], values = []] = [...(await cat("snmp")).matchAll(/^Icmp: (.*)$/gm)].map(([, line = ""]) =>
    line.split(" "),
  );
  return Number(values[names.indexOf("InRedirects")]);
}
