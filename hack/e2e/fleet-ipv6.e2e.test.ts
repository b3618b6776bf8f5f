import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { isIPv4, isIPv6 } from "node:net";
import { after, before, describe, test } from "node:test";
import { waitFor } from "../lib/wait-for.ts";
import { type Fleet, type FleetNode, startFleet } from "../system/fleet.ts";
import { distinct, FleetLab, type FleetPod, runsOf } from "../system/fleet-lab.ts";
import { idle, onlyOn, service, spread, udpPort, web } from "../system/fleet-manifests.ts";
import { ask, onNode, outside, type Place, resolve, startAnswering } from "../system/places.ts";

const limit = { timeout: 300_000 };
const limitMs = 120_000;
const skip = existsSync("/proc/net/if_inet6") ? false : "needs IPv6";

describe("a fleet whose hosts and pods have both families", { concurrency: false, skip }, () => {
  let fleet: Fleet;
  let lab: FleetLab;
  let n1: FleetNode;
  let n2: FleetNode;
  /** Pods that only ask, one on each node. */
  let clients: readonly Place[];

  before(async () => {
    fleet = await startFleet(2, {}, { dualStack: true });
    const [first, second] = fleet.nodes;
    assert.ok(first && second);
    [n1, n2] = [first, second];
    lab = new FleetLab(fleet, fleet.podGateway);
    const ports = [{ name: "ask", port: 53, protocol: "UDP", targetPort: udpPort }];
    await lab.apply([
      web("1", 4),
      service("web", { type: "NodePort" }),
      service("pods", { target: "web", type: "Headless" }),
      service("nobody", { target: "none" }),
      idle("client-1", onlyOn("n1")),
      idle("client-2", onlyOn("n2")),
      idle("udp", spread("udp"), 2),
      service("udp", { type: "NodePort", ports }),
    ]);
    for (const [name, count] of Object.entries({ web: 4, "client-1": 1, "client-2": 1, udp: 2 }))
      await lab.serving(name, count);
    clients = [await lab.place("client-1"), await lab.place("client-2")];
  }, limit);
  after(() => fleet?.close(), limit);

  test("pods, services and nodes have an address of each, and pods know theirs", limit, async () => {
    const [pod] = await lab.pods("client-1");
    const [ip = "", ip6 = "", ...others] = pod?.status?.podIps ?? [];
    assert.ok(isIPv4(ip) && isIPv6(ip6), JSON.stringify(pod?.status));
    assert.deepEqual([ip, others], [pod?.status?.podIp, []]);
    const hosts = await fleet.forage(["exec", pod?.name ?? "", "-n", "e2e", "--", "cat", "/etc/hosts"]);
    for (const own of [ip, ip6]) assert.match(hosts.stdout, new RegExp(`^${own}\\s`, "m"));
    const web = await lab.addresses("web");
    assert.ok(isIPv4(web.ip) && isIPv6(web.ip6), JSON.stringify(web));
    const nodes = await fleet.ask<{ name: string; report?: { addresses?: string[] } }[]>(["node", "ls"]);
    assert.deepEqual(
      nodes.map(({ report }) => report?.addresses),
      fleet.nodes.map(({ address, address6 }) => [address, address6]),
    );
  });

  test("names lead to both, asked by either", limit, async () => {
    const { ip, ip6 } = await lab.addresses("web");
    const own = "web.e2e.svc.cluster.local";
    const [client = outside] = clients;
    for (const server of [fleet.podGateway, fleet.podGateway6]) {
      assert.deepEqual(await resolve(client, server, "A", own), [ip]);
      assert.deepEqual(await resolve(client, server, "AAAA", own), [ip6]);
    }
    const pods = await lab.pods("web");
    const found = await resolve<string[]>(client, fleet.podGateway, "AAAA", "pods.e2e.svc.cluster.local");
    const expected = pods.map(({ node, status }) => (node === "n1" ? status?.podIps?.[1] : n2.address6));
    assert.deepEqual([...found].sort(), [...new Set(expected)].sort());
    const servers = await lab.servers(client, "_http._tcp.pods.e2e.svc.cluster.local");
    for (const { name, port } of servers) {
      const [address = ""] = await resolve<string[]>(client, fleet.podGateway, "AAAA", name);
      assert.deepEqual(await ask(client, "tcp", address, port), [`1 ${name.split(".")[0]}`]);
    }
  });

  test("virtual IPs and node ports lead to the pods of all hosts, by either", limit, async () => {
    const { ip, ip6, nodePort } = await lab.addresses("web");
    const pods = await lab.pods("web");
    assert.equal(distinct(pods.map(({ node = "" }) => node)).length, 2);
    for (const place of [...clients, await lab.place(pods[0] ?? "web"), onNode(n1), onNode(n2)])
      for (const address of [ip, ip6]) await lab.onlyAnswers(place, address, 80, told(pods));
    for (const { address, address6 } of fleet.nodes)
      for (const it of [address, address6]) await lab.onlyAnswers(outside, it, nodePort, told(pods));
  });

  test("what nobody serves is refused by either", limit, async () => {
    const { ip, ip6 } = await lab.addresses("nobody");
    for (const place of [...clients, onNode(n1)])
      for (const address of [ip, ip6]) await lab.answers(place, address, 80, /^ECONNREFUSED$/);
  });

  test("UDP goes over hosts by IPv6, too", limit, async () => {
    const { ip6, nodePort } = await lab.addresses("udp");
    const pods = await lab.pods("udp");
    for (const pod of pods) await startAnswering(lab.nodeOf(pod), await lab.place(pod), pod.name, udpPort);
    const names = pods.map(({ name }) => name).sort();
    for (const place of clients)
      assert.deepEqual(distinct(await ask(place, "udp", ip6, 53, { times: 24 })), names);
    assert.deepEqual(distinct(await ask(outside, "udp", n1.address6, nodePort, { times: 24 })), names);
  });

  test("an agent that starts anew goes on with what there is", limit, async () => {
    const { ip6 } = await lab.addresses("web");
    const [client = outside] = clients;
    const before = runsOf(await lab.pods("web"));
    await n1.agent.kill();
    n1.agent.start();
    await waitFor(
      async () => {
        const pods = await lab.pods("web");
        return pods.length === 4 && pods.every(({ status }) => status?.podIps?.length === 2);
      },
      { what: "all pods serve", limitMs },
    );
    assert.deepEqual(runsOf(await lab.pods("web")), before);
    await lab.onlyAnswers(client, ip6, 80, told(await lab.pods("web")));
    assert.deepEqual(await resolve(client, fleet.podGateway6, "AAAA", "web.e2e.svc.cluster.local"), [ip6]);
  });
});

function told(pods: readonly FleetPod[]): string[] {
  return pods.map(({ name }) => `1 ${name}`);
}
