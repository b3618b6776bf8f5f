import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { waitFor } from "../lib/wait-for.ts";
import { DESTINATION_PORT, type Fleet, type FleetNode, startFleet } from "../system/fleet.ts";
import { distinct, FleetLab, type FleetPod, runsOf } from "../system/fleet-lab.ts";
import { idle, onlyOn, READY_FILE, service, UDP_PORT, udpPods, web } from "../system/fleet-manifests.ts";
import {
  ask,
  endpointsAt,
  type Load,
  onNode,
  outside,
  type RequestSource,
  startAnswering,
  startLoad,
} from "../system/places.ts";

const LIMIT = { timeout: 300_000 };
const LIMIT_MS = 120_000;

describe("services over the hosts of a fleet", { concurrency: false }, () => {
  let fleet: Fleet;
  let lab: FleetLab;
  let n1: FleetNode;
  let n2: FleetNode;
  /** Pods that are only clients, one on each node. */
  let client1: RequestSource;
  let client2: RequestSource;

  before(async () => {
    // Pods on a node that is away for a while must not be replaced.
    fleet = await startFleet(2, { nodes: { unreachableTolerationSeconds: 3_600 } });
    const [first, second] = fleet.nodes;
    assert.ok(first && second);
    [n1, n2] = [first, second];
    lab = new FleetLab(fleet, fleet.podGateway);
    const ports = [{ name: "ask", port: 53, protocol: "UDP", targetPort: UDP_PORT }];
    await lab.apply([
      web("1", 4),
      service("web", { type: "NodePort" }),
      service("pods", { target: "web", type: "Headless" }),
      service("sticky", { target: "web", type: "NodePort", sessionAffinity: "ClientIP" }),
      idle("client-1", onlyOn("n1")),
      idle("client-2", onlyOn("n2")),
      udpPods("udp", 2),
      service("udp", { type: "NodePort", ports }),
    ]);
    for (const [name, count] of Object.entries({ web: 4, "client-1": 1, "client-2": 1, udp: 2 }))
      await lab.serving(name, count);
    [client1, client2] = [await lab.place("client-1"), await lab.place("client-2")];
  }, LIMIT);
  after(() => fleet?.close(), LIMIT);

  test(
    "names lead to pods of other hosts: addresses, ports, and each pod by its own name",
    LIMIT,
    async () => {
      const { ip } = await lab.addresses("web");
      const own = "web.e2e.svc.cluster.local";
      for (const place of [client1, client2]) {
        await lab.looksUp(place, own, [ip]);
        const [srv, ...others] = await lab.servers(place, `_http._tcp.${own}`);
        assert.deepEqual([srv?.name, srv?.port, others], [own, 80, []]);
      }
      const pods = await lab.pods("web");
      const far = pods.filter(({ node }) => node === "n2");
      assert.ok(far.length > 0 && far.length < pods.length, "pods on both nodes");
      const expected = pods.map(({ node, status }) => (node === "n1" ? (status?.podIp ?? "") : n2.address));
      await lab.looksUp(client1, "pods.e2e.svc.cluster.local", distinct(expected));
      const servers = await lab.servers(client1, "_http._tcp.pods.e2e.svc.cluster.local");
      assert.equal(servers.length, pods.length);
      for (const { name, port } of servers) {
        const [address = ""] = await lab.lookUp(client1, name);
        // The record leads to exactly this pod.
        await lab.onlyAnswers(client1, address, port, [`1 ${name.split(".")[0]}`]);
      }
      assert.equal(await lab.lookUp(client1, "gone.e2e.svc.cluster.local"), "ENOTFOUND");
    },
  );

  test(
    "a pod on any host looks up endpoints through its agent, also while the coordinator is away",
    LIMIT,
    async () => {
      const path = "web.e2e.svc.cluster.local:80";
      const name = "destination.forage.cluster.local";
      for (const place of [client1, client2]) {
        assert.deepEqual(await lab.lookUp(place, name), [fleet.podGateway]);
        assert.equal(await endpointsAt(place, fleet.podGateway, DESTINATION_PORT, path), 4);
        const elsewhere = "web.other.svc.cluster.local:80";
        const refused = await endpointsAt(place, fleet.podGateway, DESTINATION_PORT, elsewhere);
        assert.equal(refused, "PERMISSION_DENIED");
      }
      assert.equal(await endpointsAt(onNode(n2), "127.0.0.1", DESTINATION_PORT, path), 4);
      await n2.hearsCoordinator(false);
      try {
        assert.equal(await endpointsAt(client2, fleet.podGateway, DESTINATION_PORT, path), 4);
      } finally {
        await n2.hearsCoordinator(true);
      }
      await lab.nodeIsReady(n2, true);
    },
  );

  test("a pod reaches itself and all others on all hosts by the virtual IP", LIMIT, async () => {
    const { ip } = await lab.addresses("web");
    const pods = await lab.pods("web");
    for (const pod of pods) await lab.onlyAnswers(await lab.place(pod), ip, 80, answersOf("1", pods));
  });

  test("with affinity, each client keeps its pod, whichever host the client is on", LIMIT, async () => {
    const { ip, nodePort } = await lab.addresses("sticky");
    const asked = async (place: RequestSource, address: string, port: number): Promise<void> => {
      const answers = distinct(await ask(place, "tcp", address, port, { times: 15 }));
      assert.equal(answers.length, 1, answers.join());
      assert.match(answers.join(), /^1 web-/);
    };
    for (const place of [client1, client2, onNode(n1), onNode(n2)]) await asked(place, ip, 80);
    for (const { address } of fleet.nodes) await asked(outside, address, nodePort);
  });

  test(
    "UDP: reaches other hosts, by the virtual IP and from outside, and moves to another pod when one ends",
    LIMIT,
    async () => {
      const { ip, nodePort } = await lab.addresses("udp");
      const pods = await lab.pods("udp");
      for (const pod of pods) await startAnswering(lab.nodeOf(pod), await lab.place(pod), pod.name, UDP_PORT);
      const names = pods.map(({ name }) => name).sort();
      const ways = [
        { place: client1, address: ip, port: 53 },
        { place: client2, address: ip, port: 53 },
        { place: outside, address: n1.address, port: nodePort },
        { place: outside, address: n2.address, port: nodePort },
      ];
      for (const { place, address, port } of ways)
        assert.deepEqual(distinct(await ask(place, "udp", address, port, { times: 24 })), names);

      // Clients that never change their port use one pod as long as it serves. This pod stops, but its process
      // continues to answer.
      const gone = pods.find(({ node }) => node === "n2")?.name ?? "";
      const kept = pods.find(({ node }) => node === "n1")?.name ?? "";
      // Clients that share a network namespace need different ports. These are below the ports that the kernel assigns.
      const askers = await Promise.all(ways.map((way, at) => ownPortTo(gone, 20_000 + at * 100, way)));
      const asked = async (): Promise<string> =>
        distinct(
          (await Promise.all(askers.map((it) => ask(it.place, "udp", it.address, it.port, it)))).flat(),
        ).join();
      assert.equal(await asked(), gone, "they stay");
      await lab.exec(gone, ["rm", READY_FILE]);
      await waitFor(async () => (await asked()) === kept, {
        what: "all have been led on",
        limitMs: LIMIT_MS,
      });
      await lab.exec(gone, ["touch", READY_FILE]);
      await lab.serving("udp", 2);
    },
  );

  test(
    "supports several services of one target, a renamed one, other ports, and a target that is created later",
    LIMIT,
    async () => {
      await lab.apply([service("old", { target: "web" }), service("early", { target: "late" })]);
      const old = await lab.addresses("old");
      const early = await lab.addresses("early");
      await lab.answers(client2, old.ip, 80, /^1 web-/);
      await lab.answers(client2, early.ip, 80, /^ECONNREFUSED$/);
      const ported = (name: string, port: number) =>
        service("new", { target: "web", ports: [{ name, port, targetPort: 8080 }] });
      await lab.apply([ported("first", 81), web("1", 1, "late")]);
      assert.equal((await fleet.forage(["delete", "service/old", "-n", "e2e"])).exitCode, 0);
      const renamed = await lab.addresses("new");
      assert.notEqual(renamed.ip, old.ip);
      await lab.answers(client2, old.ip, 80, /^ECONNREFUSED$/);
      await lab.answers(client2, renamed.ip, 81, /^1 web-/);
      await lab.answers(client1, early.ip, 80, /^1 late-/);
      const name = "new.e2e.svc.cluster.local";
      const portOf = async (port: string) => (await lab.servers(client2, `_${port}._tcp.${name}`))[0]?.port;
      assert.equal(await portOf("first"), 81);
      await lab.apply([ported("second", 82)]);
      await lab.answers(client2, renamed.ip, 82, /^1 web-/);
      await lab.answers(client2, renamed.ip, 81, /^ECONNREFUSED$/);
      await waitFor(async () => (await portOf("second")) === 82, {
        what: "the port has its name",
        limitMs: LIMIT_MS,
      });
      assert.equal(await portOf("first"), undefined);
    },
  );

  test(
    "a new version, and fewer pods, under load across hosts and from outside: no request fails",
    LIMIT,
    async (t) => {
      const { ip, nodePort } = await lab.addresses("web");
      const loads: [string, Load][] = [];
      for (const [what, place, address, port] of [
        ["a pod of n1", client1, ip, 80],
        ["a pod of n2", client2, ip, 80],
        ["n1 itself", onNode(n1), ip, 80],
        ["outside by n1", outside, n1.address, nodePort],
        ["outside by n2", outside, n2.address, nodePort],
      ] as const)
        loads.push([what, await startLoad(n1, place, address, port, 4)]);
      await lab.apply([web("2", 4)]);
      await lab.serving("web", 4);
      await lab.apply([web("2", 1)]);
      const [last] = await lab.serving("web", 1);
      const alone = async () => (await lab.pods("web", "all")).length === 1;
      await waitFor(alone, { what: "the others have left", limitMs: LIMIT_MS });
      await lab.apply([web("2", 4)]);
      await lab.serving("web", 4);
      for (const [what, load] of loads) {
        const { answered, answers, failed, failures, slowestMs } = await load.end();
        t.diagnostic(`${what}: ${answered} answered, ${failed} failed, the slowest after ${slowestMs} ms`);
        assert.deepEqual([failed, failures], [0, []], what);
        assert.ok((answers[`2 ${last?.name}`] ?? 0) > 0, what);
        assert.ok(Object.keys(answers).length > 4, `pods of both versions answered: ${what}`);
      }
    },
  );

  test("a disconnected node continues with its last state, and gets the changes later", LIMIT, async () => {
    const { ip, nodePort } = await lab.addresses("web");
    const pods = await lab.pods("web");
    const all = answersOf("2", pods);
    const near = answersOf(
      "2",
      pods.filter(({ node }) => node === "n1"),
    );
    const runs = async () => runsOf([...(await lab.pods("web", "all")), ...(await lab.pods("udp", "all"))]);
    const before = await runs();
    await n2.hearsCoordinator(false);
    await lab.nodeIsReady(n2, false);
    // n1 has the current pods, and n2 the last ones that it knew, which still serve.
    await lab.onlyAnswers(client1, ip, 80, near);
    await lab.apply([service("meanwhile", { target: "web" })]);
    const meanwhile = await lab.addresses("meanwhile");
    await lab.answers(client1, meanwhile.ip, 80, / web-/);
    await lab.onlyAnswers(client2, ip, 80, all);
    await lab.onlyAnswers(outside, n2.address, nodePort, all);
    assert.deepEqual(await lab.lookUp(client2, "web.e2e.svc.cluster.local"), [ip]);
    assert.equal(await lab.lookUp(client2, "meanwhile.e2e.svc.cluster.local"), "ENOTFOUND");
    await n2.hearsCoordinator(true);
    await lab.nodeIsReady(n2, true);
    await lab.onlyAnswers(client1, ip, 80, all);
    await lab.onlyAnswers(client2, meanwhile.ip, 80, all);
    await lab.looksUp(client2, "meanwhile.e2e.svc.cluster.local", [meanwhile.ip]);
    assert.deepEqual(await runs(), before);
  });

  test(
    "pods of an unreachable node are removed from the others' tables, and added when it returns",
    LIMIT,
    async (t) => {
      const { ip } = await lab.addresses("web");
      const pods = await lab.pods("web");
      const before = runsOf(pods);
      const sinceMs = performance.now();
      await n2.connected(false);
      const near = answersOf(
        "2",
        pods.filter(({ node }) => node === "n1"),
      );
      await lab.onlyAnswers(client1, ip, 80, near);
      t.diagnostic(`led elsewhere after ${Math.round((performance.now() - sinceMs) / 100) / 10} s`);
      // The node itself resolves names.
      assert.deepEqual(await lab.lookUp(client2, "web.e2e.svc.cluster.local"), [ip]);
      await n2.connected(true);
      await lab.nodeIsReady(n2, true);
      for (const place of [client1, client2]) await lab.onlyAnswers(place, ip, 80, answersOf("2", pods));
      assert.deepEqual(runsOf(await lab.pods("web", "all")), before);
    },
  );
});

/** Returns the path with a client port, one of the hundred from `first` on, that reaches this pod. */
async function ownPortTo(
  pod: string,
  first: number,
  way: { readonly place: RequestSource; readonly address: string; readonly port: number },
) {
  for (let ownPort = first; ownPort < first + 100; ownPort++) {
    const [answer] = await ask(way.place, "udp", way.address, way.port, { ownPort });
    if (answer === pod) return { ...way, ownPort };
  }
  throw new Error(`${pod} never answers`);
}

function answersOf(version: string, pods: readonly FleetPod[]): string[] {
  return pods.map(({ name }) => `${version} ${name}`);
}
