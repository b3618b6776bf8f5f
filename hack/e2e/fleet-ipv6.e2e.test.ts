import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { isIPv4, isIPv6 } from "node:net";
import { after, before, describe, test } from "node:test";
import { waitFor } from "../lib/wait-for.ts";
import { type Fleet, type FleetNode, startFleet } from "../system/fleet.ts";
import { distinct, FleetLab, type FleetPod, runsOf } from "../system/fleet-lab.ts";
import { service, spread, UDP_PORT, web } from "../system/fleet-manifests.ts";
import { ask, onNode, outside, type RequestSource, resolve, startAnswering } from "../system/places.ts";

const LIMIT = { timeout: 300_000 };
const LIMIT_MS = 120_000;
const skip = existsSync("/proc/net/if_inet6") ? false : "needs IPv6";

describe("a fleet whose hosts and pods have both families", { concurrency: false, skip }, () => {
  let fleet: Fleet;
  let lab: FleetLab;
  let n1: FleetNode;
  let n2: FleetNode;
  /** A node whose host has no IPv4 address although its pods have one. */
  let n3: FleetNode;
  /** The pods of a service, one on each node, in the order of the nodes. */
  let webs: readonly FleetPod[];
  let clients: readonly RequestSource[];

  before(async () => {
    fleet = await startFleet(3, {}, { dualStack: true, ipv6Only: 1 });
    const [first, second, third] = fleet.nodes;
    assert.ok(first && second && third);
    [n1, n2, n3] = [first, second, third];
    lab = new FleetLab(fleet, fleet.podGateway);
    const ports = [{ name: "ask", port: 53, protocol: "UDP", targetPort: UDP_PORT }];
    await lab.apply([
      web("1", 3),
      service("web", { type: "NodePort" }),
      service("pods", { target: "web", type: "Headless" }),
      service("nobody", { target: "none" }),
      client(3),
      service("client", { type: "NodePort", ports }),
    ]);
    webs = byNode(await lab.serving("web", 3));
    const pods = byNode(await lab.serving("client", 3));
    clients = await Promise.all(pods.map((pod) => lab.place(pod)));
  }, LIMIT);
  after(() => fleet?.close(), LIMIT);

  test("pods, services and nodes have an address of each family, and pods know theirs", LIMIT, async () => {
    const [pod] = webs;
    const [ip = "", ip6 = "", ...others] = pod?.status?.podIps ?? [];
    assert.ok(isIPv4(ip) && isIPv6(ip6), JSON.stringify(pod));
    assert.deepEqual([ip, others], [pod?.status?.podIp, []]);
    const hosts = await fleet.forage(["exec", pod?.name ?? "", "-n", "e2e", "--", "cat", "/etc/hosts"]);
    for (const own of [ip, ip6]) assert.match(hosts.stdout, new RegExp(`^${own}\\s`, "m"));
    const web = await lab.addresses("web");
    assert.ok(isIPv4(web.ip) && isIPv6(web.ip6), JSON.stringify(web));
    const nodes = await fleet.ask<{ name: string; report?: { addresses?: string[] } }[]>(["node", "ls"]);
    for (const { name, address, address6 } of fleet.nodes)
      assert.deepEqual(
        nodes.find((node) => node.name === name)?.report?.addresses,
        [address, address6].filter((it) => it !== ""),
      );
  });

  test("names resolve to addresses of both families, whichever family the query uses", LIMIT, async () => {
    const { ip, ip6 } = await lab.addresses("web");
    const own = "web.e2e.svc.cluster.local";
    const [client = outside] = clients;
    for (const server of [fleet.podGateway, fleet.podGateway6]) {
      assert.deepEqual(await resolve(client, server, "A", own), [ip]);
      assert.deepEqual(await resolve(client, server, "AAAA", own), [ip6]);
    }
    const headless = "pods.e2e.svc.cluster.local";
    const found = await resolve<string[]>(client, fleet.podGateway, "AAAA", headless);
    const expected = [webs[0]?.status?.podIps?.[1], n2.address6, n3.address6];
    assert.deepEqual([...found].sort(), [...expected].sort());
    const servers = await lab.servers(client, `_http._tcp.${headless}`);
    assert.equal(servers.length, 3);
    for (const { name, port } of servers) {
      const [address = ""] = await resolve<string[]>(client, fleet.podGateway, "AAAA", name);
      assert.deepEqual(await ask(client, "tcp", address, port), [`1 ${name.split(".")[0]}`]);
    }
  });

  test("virtual IPs and node ports reach the pods of all hosts that have the family", LIMIT, async () => {
    const { ip, ip6, nodePort } = await lab.addresses("web");
    const itself = await lab.place(webs[0] ?? "web");
    for (const place of [...clients, itself, onNode(n1), onNode(n3)])
      await lab.onlyAnswers(place, ip6, 80, answersOf(webs));
    for (const { address6 } of fleet.nodes)
      await lab.onlyAnswers(outside, address6, nodePort, answersOf(webs));
    // Over IPv4 the third host neither reaches others nor is reached.
    const [of1 = outside, of2 = outside, of3 = outside] = clients;
    for (const place of [of1, of2, onNode(n1)])
      await lab.onlyAnswers(place, ip, 80, answersOf(webs.slice(0, 2)));
    for (const place of [of3, onNode(n3)]) await lab.onlyAnswers(place, ip, 80, answersOf(webs.slice(2)));
    await lab.onlyAnswers(outside, n1.address, nodePort, answersOf(webs.slice(0, 2)));
  });

  test("both families refuse a service without endpoints", LIMIT, async () => {
    const { ip, ip6 } = await lab.addresses("nobody");
    for (const place of [...clients, onNode(n1), onNode(n3)])
      for (const address of [ip, ip6]) await lab.answers(place, address, 80, /^ECONNREFUSED$/);
  });

  test("UDP reaches pods on other hosts over IPv6, too", LIMIT, async () => {
    const { ip6, nodePort } = await lab.addresses("client");
    const pods = byNode(await lab.serving("client", 3));
    for (const [index, { name }] of pods.entries())
      await startAnswering(fleet.nodes[index] ?? n1, clients[index] ?? outside, name, UDP_PORT);
    const names = pods.map(({ name }) => name).sort();
    // The probability that 48 clients miss one of three pods is 10^-8.
    for (const place of clients)
      assert.deepEqual(distinct(await ask(place, "udp", ip6, 53, { times: 48 })), names);
    assert.deepEqual(distinct(await ask(outside, "udp", n1.address6, nodePort, { times: 48 })), names);
  });

  test("a restarted agent continues with the existing rules", LIMIT, async () => {
    const { ip6 } = await lab.addresses("web");
    const [client = outside] = clients;
    await n1.agent.kill();
    n1.agent.start();
    await lab.nodeIsReady(n1, true);
    const after = byNode(await lab.serving("web", 3));
    assert.deepEqual(runsOf(after), runsOf(webs));
    assert.deepEqual(
      after.map(({ status }) => status?.podIps),
      webs.map(({ status }) => status?.podIps),
    );
    await lab.onlyAnswers(client, ip6, 80, answersOf(webs));
    const name = "web.e2e.svc.cluster.local";
    await waitFor(async () => `${await resolve(client, fleet.podGateway6, "AAAA", name)}` === ip6, {
      what: "the name server answers",
      limitMs: LIMIT_MS,
    });
  });
});

function byNode(pods: readonly FleetPod[]): FleetPod[] {
  return [...pods].sort((a, b) => ((a.node ?? "") < (b.node ?? "") ? -1 : 1));
}

function answersOf(pods: readonly FleetPod[]): string[] {
  return pods.map(({ name }) => `1 ${name}`);
}

/** Returns a client without probes, because probes would cost more than everything else in this test. */
function client(replicas: number): object {
  const container = {
    name: "main",
    image: "localhost/forage/busybox:1",
    command: ["sleep", "100000"],
    resources: { requests: { cpu: "10m", memory: "16Mi" } },
    ports: [{ name: "udp", containerPort: UDP_PORT, protocol: "UDP" }],
  };
  const podConfig = { terminationGracePeriodSeconds: 1, ...spread("client") };
  return { name: "client", containerService: { scaling: { replicas }, podConfig, container } };
}
