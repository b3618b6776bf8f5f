import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { run } from "../lib/run.ts";
import { waitFor } from "../lib/wait-for.ts";
import { type Fleet, type FleetNode, startFleet } from "../system/fleet.ts";
import { FleetLab } from "../system/fleet-lab.ts";
import { idle, onlyOn, service, web } from "../system/fleet-manifests.ts";
import { ask, onNode, outside, type RequestSource } from "../system/places.ts";

const LIMIT = { timeout: 300_000 };
const LIMIT_MS = 120_000;
const NAMESPACE = ["-n", "e2e"];

interface BalancerJson {
  readonly name: string;
  readonly loadBalancerIps?: readonly string[];
  readonly announcedBy?: string;
}

describe("load balancers on the nodes' network", { concurrency: false }, () => {
  let fleet: Fleet;
  let lab: FleetLab;
  let clients: readonly RequestSource[];
  let ips: readonly string[];

  before(async () => {
    // Pods on a node that is away for a while must not be replaced.
    const nodes = { unreachableTolerationSeconds: 3_600 };
    fleet = await startFleet(2, { nodes }, { dualStack: true, balancers: true });
    lab = new FleetLab(fleet, fleet.podGateway);
    await lab.apply([
      web("1", 4),
      service("web", { type: "LoadBalancer" }),
      service("empty", { target: "nothing", type: "LoadBalancer" }),
      idle("client-1", onlyOn("n1")),
      idle("client-2", onlyOn("n2")),
    ]);
    for (const [name, count] of Object.entries({ web: 4, "client-1": 1, "client-2": 1 }))
      await lab.serving(name, count);
    const inPods = [await lab.place("client-1"), await lab.place("client-2")];
    clients = [...inPods, ...fleet.nodes.map(onNode), outside];
    ips = (await announced("web")).loadBalancerIps ?? [];
  }, LIMIT);
  after(() => fleet?.close(), LIMIT);

  test("addresses reach all pods from everywhere, on the service's ports only", LIMIT, async () => {
    const all = (await lab.pods("web")).map(({ name }) => `1 ${name}`);
    assert.equal(ips.length, 2, "one of each family");
    for (const ip of ips) {
      for (const client of clients) await lab.onlyAnswers(client, ip, 80, all);
      for (const client of clients) await lab.answers(client, ip, 81, /^ECONNREFUSED$/);
      assert.equal(await neighbour(ip), await hardwareOf(await announcer("web")));
    }
    const empty = (await announced("empty")).loadBalancerIps ?? [];
    for (const client of clients) await lab.answers(client, empty[0] ?? "", 80, /^ECONNREFUSED$/);
  });

  test("a requested address is assigned, and refused to other services", LIMIT, async () => {
    const taken = [...ips, ...((await announced("empty")).loadBalancerIps ?? [])];
    const pool = ["200", "201", "202"].map((end) => ips[0]?.replace(/\d+$/, end) ?? "");
    const wish = pool.find((ip) => !taken.includes(ip)) ?? "";
    const annotations = { "forage.dev/load-balancer-ip": wish };
    await lab.apply([service("wish", { target: "web", type: "LoadBalancer", annotations })]);
    assert.equal((await announced("wish")).loadBalancerIps?.[0], wish);
    const resources = [service("thief", { target: "web", type: "LoadBalancer", annotations })];
    const manifest = JSON.stringify({ namespace: "e2e", resources });
    const { exitCode, stderr } = await fleet.forage(["apply", "-f", "-"], manifest);
    assert.notEqual(exitCode, 0);
    assert.match(stderr, /load-balancer-ip.*belongs to service e2e\/wish/);
  });

  test(
    "a node that is lost: another node announces its addresses, and keeps them when it returns",
    LIMIT,
    async (t) => {
      const lost = await announcer("web");
      await lost.connected(false);
      const sinceMs = performance.now();
      await reached(ips[0] ?? "", lost);
      t.diagnostic(`a lost node's address answered again after ${seconds(sinceMs)} s`);
      await reached(ips[1] ?? "", lost);
      await lost.connected(true);
      await lab.nodeIsReady(lost, true);
      for (const ip of ips)
        await waitFor(async () => !(await has(lost, ip)), { what: "it gives them up", limitMs: LIMIT_MS });
      assert.notEqual((await announcer("web")).name, lost.name);
    },
  );

  test(
    "a node whose agent is dead: another node takes over its addresses, and the kernel drops them on the first",
    LIMIT,
    async (t) => {
      const lost = await announcer("web");
      // The node held the addresses alone while the other was away, so for an unlimited time.
      for (const ip of ips)
        await waitFor(() => leased(lost, ip), { what: "they are on a lease again", limitMs: LIMIT_MS });
      await lost.agent.kill();
      const sinceMs = performance.now();
      await waitFor(async () => (await announcer("web")).name !== lost.name, {
        what: "another announces it",
        limitMs: LIMIT_MS,
      });
      t.diagnostic(`a dead agent's addresses were given to another after ${seconds(sinceMs)} s`);
      for (const ip of ips) {
        await reached(ip, lost);
        await waitFor(async () => !(await has(lost, ip)), { what: "the lease ends", limitMs: LIMIT_MS });
      }
      t.diagnostic(`the kernel there had dropped them after ${seconds(sinceMs)} s`);
      lost.agent.start();
      await lab.nodeIsReady(lost, true);
    },
  );

  test(
    "a node that is cut off from the coordinator only yields its addresses to the node that took over",
    LIMIT,
    async () => {
      const cut = await announcer("web");
      await cut.hearsCoordinator(false);
      for (const ip of ips) {
        await reached(ip, cut);
        await waitFor(async () => !(await has(cut, ip)), { what: "it gives way", limitMs: LIMIT_MS });
      }
      await cut.hearsCoordinator(true);
      await lab.nodeIsReady(cut, true);
    },
  );

  test(
    "addresses remain without the coordinator, also after a restart of the agent and a simulated reboot",
    LIMIT,
    async () => {
      const node = await announcer("web");
      await fleet.coordinator.stop();
      for (const ip of ips) await lab.answers(outside, ip, 80, /^1 web-/);
      await node.agent.kill();
      for (const ip of ips) await run("ip", ["-n", `net-${node.host.name}`, "address", "flush", "to", ip]);
      node.agent.start();
      for (const ip of ips) {
        await waitFor(() => has(node, ip), { what: "it is there again", limitMs: LIMIT_MS });
        await lab.answers(outside, ip, 80, /^1 web-/);
      }
      fleet.coordinator.start();
      const back = async (): Promise<boolean> => (await fleet.forage(["node", "ls"])).exitCode === 0;
      await waitFor(back, { what: "the coordinator answers", limitMs: LIMIT_MS });
      for (const it of fleet.nodes) await lab.nodeIsReady(it, true);
      assert.equal((await announcer("web")).name, node.name, "it didn't move");
    },
  );

  test("a drained node's addresses move to another node", LIMIT, async () => {
    const drained = await announcer("web");
    await fleet.forage(["node", "drain", drained.name, "--timeout", "1s"]);
    for (const ip of ips) await reached(ip, drained);
    assert.equal((await fleet.forage(["node", "uncordon", drained.name])).exitCode, 0);
  });

  test("a service that is no longer a load balancer releases its addresses", LIMIT, async () => {
    const node = await announcer("web");
    await lab.apply([service("web", { type: "ClusterIP" })]);
    for (const ip of ips)
      await waitFor(async () => !(await has(node, ip)), { what: "they are gone", limitMs: LIMIT_MS });
  });

  /** Waits until the load balancer is announced. */
  async function announced(name: string): Promise<BalancerJson> {
    return waitFor(
      async () => {
        const services = await fleet.ask<BalancerJson[]>(["get", "services", ...NAMESPACE]);
        const found = services.find((it) => it.name === name);
        return (found?.announcedBy ?? "") !== "" && found;
      },
      { what: `${name} is announced`, limitMs: LIMIT_MS },
    );
  }

  async function announcer(name: string): Promise<FleetNode> {
    const { announcedBy } = await announced(name);
    const found = fleet.nodes.find((node) => node.name === announcedBy);
    assert.ok(found, `${announcedBy} is no node`);
    return found;
  }

  /** Waits until this machine reaches the address through another node than this one. */
  async function reached(ip: string, notBy: FleetNode): Promise<void> {
    const not = await hardwareOf(notBy);
    await waitFor(
      async () => {
        const [answer = ""] = await ask(outside, "tcp", ip, 80);
        const by = await neighbour(ip);
        return answer.startsWith("1 web-") && by !== undefined && by !== not;
      },
      { what: `${ip} is reached by another node`, limitMs: LIMIT_MS, everyMs: 100 },
    );
  }
});

/** Returns the hardware address that this machine has for the IP address. */
async function neighbour(ip: string): Promise<string | undefined> {
  const { stdout } = await run("ip", ["-json", "neigh", "show", ip]);
  return (JSON.parse(stdout || "[]") as { lladdr?: string }[])[0]?.lladdr;
}

async function hardwareOf({ host }: FleetNode): Promise<string | undefined> {
  const { stdout } = await run("ip", ["-json", "-n", `net-${host.name}`, "link", "show", "dev", "eth0"]);
  return (JSON.parse(stdout) as { address?: string }[])[0]?.address;
}

async function has({ host }: FleetNode, ip: string): Promise<boolean> {
  const { stdout } = await run("ip", ["-n", `net-${host.name}`, "-o", "address", "show", "to", ip]);
  return stdout.trim() !== "";
}

/** Reports whether the address expires by itself in the kernel. */
async function leased({ host }: FleetNode, ip: string): Promise<boolean> {
  const { stdout } = await run("ip", ["-n", `net-${host.name}`, "-o", "address", "show", "to", ip]);
  return /valid_lft \d+sec/.test(stdout);
}

function seconds(sinceMs: number): string {
  return ((performance.now() - sinceMs) / 1000).toFixed(1);
}
