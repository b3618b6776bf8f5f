import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import {
  ListEventsRequest,
  type Resource,
  UpdateNodeRequest,
} from "@forage/proto/forage/operator/v1/operator";
import { ForageResource } from "@forage/proto/forest/v1/forage";
import { readConfig } from "../src/config.ts";
import { HollowAgent } from "./support/hollow-agent.ts";
import { aRequest } from "./support/requests.ts";
import { until } from "./support/until.ts";
import { startWorld, type World } from "./support/world.ts";

const LIMIT = { timeout: 180_000 };
const NETWORKS = ["192.0.2.0/24"];
const EXCLUDED = "forage.dev/exclude-from-load-balancers";
const WISHED = "forage.dev/load-balancer-ip";

test(
  "announces a load balancer's address from one node, and from another when that node is lost",
  LIMIT,
  async (t) => {
    const { world, agents } = await aFleet(t, ["192.0.2.50-192.0.2.51"]);
    await apply(world, balancer("web"));
    const { announcedBy, loadBalancerIps, virtualIps } = await announced(world, "web");
    assert.match(loadBalancerIps.join(), /^192\.0\.2\.5[01]$/);
    assert.equal(virtualIps.length, 1);
    const received = (agent: HollowAgent) => agent.services.get("shop/web");
    await until("the agents have the new announcer", () =>
      agents.every((it) => received(it)?.announcedBy === announcedBy),
    );
    assert.deepEqual(
      agents.map((it) => [received(it)?.loadBalancerIps, received(it)?.announcedAlone, received(it)?.type]),
      agents.map(() => [loadBalancerIps, false, "LoadBalancer"]),
    );
    const lost = agents.find(({ name }) => name === announcedBy);
    assert.ok(lost);
    lost.close();
    const others = agents.filter((it) => it !== lost);
    await until("the other announces it", () =>
      others.every((it) => !["", lost.name].includes(received(it)?.announcedBy ?? "")),
    );
    const now = (await announced(world, "web")).announcedBy;
    const back = lost.again();
    await until("the node is back, and has the new announcer", () => received(back)?.announcedBy === now);
    await world.restart();
    assert.equal(
      (await announced(world, "web")).announcedBy,
      now,
      "a restart of the coordinator moves nothing",
    );
  },
);

test(
  "announces no address from excluded nodes and nodes of other networks, and reports when no node can",
  LIMIT,
  async (t) => {
    const { world, agents } = await aFleet(t, ["192.0.2.50/32"], 1);
    await HollowAgent.start(world, { name: "elsewhere", networks: ["198.51.100.0/24"] });
    await HollowAgent.start(world, { name: "never", networks: NETWORKS, labels: { [EXCLUDED]: "" } });
    await apply(world, balancer("web"));
    assert.equal((await announced(world, "web")).announcedBy, "n1");
    await until("it is the only one", () => agents[0]?.services.get("shop/web")?.announcedAlone === true);
    const change = (fields: object) =>
      world.operator().updateNode(UpdateNodeRequest.fromPartial({ name: "n1", ...fields }));
    await change({ setLabels: { [EXCLUDED]: "true" } });
    const message = async (name: string) => (await resource(world, name))?.message ?? "";
    await until("no node can", async () => /no node announces 192\.0\.2\.50/.test(await message("web")));
    await change({ removeLabels: [EXCLUDED] });
    assert.equal((await announced(world, "web")).announcedBy, "n1");
    // The load balancer has no target, and the message is the same as before.
    assert.match(await message("web"), /^TargetNotFound: [^;]*$/);
    await apply(world, balancer("late"));
    await until("it has no address", async () =>
      /no address for its load balancer/.test(await message("late")),
    );
    await until("an event has the reason", async () => {
      const { events } = await world
        .operator()
        .listEvents(ListEventsRequest.fromPartial({ namespace: "shop" }));
      return events.some(
        (it) => it.name === "late" && /no load balancer IP is left in 192\.0\.2\.50\/32/.test(it.message),
      );
    });
  },
);

test(
  "refuses addresses that can't be assigned: without a pool, outside of it, of others and of nodes",
  LIMIT,
  async (t) => {
    const { world } = await aFleet(t, []);
    const refused = async (where: World, ...resources: ForageResource[]): Promise<string> => {
      try {
        await where.forage().applyResources(aRequest("refused", resources));
        return "taken";
      } catch (error) {
        return String(error);
      }
    };
    assert.match(
      await refused(world, balancer("web")),
      /resources\[0\]\.service\.type.*services\.loadBalancerIps/,
    );
    const { world: other } = await aFleet(t, ["192.0.2.0/24"]);
    const wish = (name: string, ip: string) => balancer(name, { [WISHED]: ip });
    await apply(other, wish("first", "192.0.2.9"));
    await until(
      "it has it",
      async () => (await resource(other, "first"))?.loadBalancerIps[0] === "192.0.2.9",
    );
    assert.match(await refused(other, wish("web", "192.0.2.9")), /belongs to service shop\/first/);
    assert.match(await refused(other, wish("web", "192.0.2.1")), /address of node n1/);
    assert.match(
      await refused(other, wish("web", "203.0.113.1")),
      /not in the coordinator's pool, 192\.0\.2\.0\/24/,
    );
    assert.match(
      await refused(other, wish("a", "192.0.2.8"), wish("b", "192.0.2.8")),
      /belongs to service shop\/a/,
    );
    assert.equal(await refused(other, wish("first", "192.0.2.9")), "taken", "its own it may ask for again");
  },
);

async function aFleet(t: TestContext, loadBalancerIps: string[], size = 3) {
  const { services } = readConfig(["--data-dir", "/d"], {});
  const nodes = {
    unreachableSeconds: 1.5,
    startGraceSeconds: 60,
    unreachableTolerationSeconds: 1,
    recoveryGraceSeconds: 1,
    notReadyTolerationSeconds: 300,
  };
  const world = await startWorld(
    t,
    {},
    { heartbeatIntervalSeconds: 0.5, nodes, services: { ...services, loadBalancerIps } },
  );
  const agents: HollowAgent[] = [];
  for (let i = 1; i <= size; i++)
    agents.push(
      await HollowAgent.start(world, { name: `n${i}`, address: `192.0.2.${i}`, networks: NETWORKS }),
    );
  return { world, agents };
}

function balancer(name: string, annotations: Record<string, string> = {}): ForageResource {
  const value = { target: "web", type: "LoadBalancer", ports: [{ name: "http", port: 80 }], annotations };
  return ForageResource.fromPartial({ name, spec: { $case: "service", value } });
}

async function apply(world: World, resource: ForageResource): Promise<void> {
  await world.forage().applyResources(aRequest(resource.name, [resource]));
}

async function resource(world: World, name: string): Promise<Resource | undefined> {
  const { resources } = await world.operator().listResources({ namespace: "shop", labels: {} });
  return resources.find((it) => it.name === name);
}

/** Waits until the address is announced. */
async function announced(world: World, name: string): Promise<Resource> {
  let found: Resource | undefined;
  await until(`${name} is announced`, async () => {
    found = await resource(world, name);
    return (found?.announcedBy ?? "") !== "";
  });
  assert.ok(found);
  return found;
}
