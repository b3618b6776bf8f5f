import assert from "node:assert/strict";
import { test } from "node:test";
import { randomOf } from "@forage/common/random";
import { ServiceAddressRecord } from "@forage/proto/forage/store/v1/store";
import { ServicePort } from "@forage/proto/forest/v1/forage";
import { type IpRange, parseIpRange } from "../../ip/ip-range.ts";
import { toTimestamp } from "../../model/timestamp.ts";
import type { AddressedService, AddressStep } from "./draft.ts";
import { type AnnouncingNode, parseNetwork } from "./node-networks.ts";
import { planAddresses } from "./plan.ts";
import { KEEP_RELEASED_MS } from "./planner.ts";

const NOW_MS = 10_000_000;

test("assigns each service a unique address, which it keeps", () => {
  const services = Array.from({ length: 200 }, (_, index) => service(`s${index}`));
  const records = written(plan(services, []));
  assert.equal(records.length, 200);
  assert.equal(new Set(records.flatMap(({ virtualIps }) => virtualIps)).size, 200);
  assert.deepEqual(plan(services, records), []);
  const more = written(plan([...services, service("late")], records));
  assert.equal(more.length, 1);
  assert.ok(!records.some(({ virtualIps }) => virtualIps[0] === more[0]?.virtualIps[0]));
});

test("assigns an address of each family once a second range is configured, also to existing services", () => {
  const six = parseIpRange("fd96::/112");
  assert.ok(six);
  const [before] = written(plan([service("a")], []));
  assert.ok(before);
  const [after, other] = written(plan([service("a"), service("b")], [before], { virtualIps6: [six] }));
  assert.equal(after?.virtualIps[0], before.virtualIps[0]);
  assert.ok(six.has(after?.virtualIps[1] ?? ""), after?.virtualIps.join());
  assert.notEqual(other?.virtualIps[1], after?.virtualIps[1]);
  assert.ok(after && other);
  assert.deepEqual(plan([service("a"), service("b")], [after, other], { virtualIps6: [six] }), []);
  // Removing the range from the configuration removes its addresses from the services.
  assert.deepEqual(
    written(plan([service("a"), service("b")], [after, other])).map(({ virtualIps }) => virtualIps.length),
    [1, 1],
  );
});

test("reports an exhausted IPv6 range, and still assigns IPv4 addresses", () => {
  const six = parseIpRange("fd96::/126");
  assert.ok(six);
  const services = ["a", "b", "c"].map((name) => service(name));
  const steps = plan(services, [], { virtualIps6: [six] });
  assert.deepEqual(
    written(steps)
      .map(({ virtualIps }) => virtualIps.length)
      .sort(),
    [1, 2, 2],
  );
  assert.ok(described(steps).some((it) => it.includes("no virtual IP is left in fd96::/126")));
});

test("assigns no address to a headless service, and releases the address of a service that becomes headless", () => {
  assert.deepEqual(plan([service("a", { type: "Headless" })], []), []);
  const [record] = written(plan([service("a")], []));
  assert.ok(record);
  const [released] = written(plan([service("a", { type: "Headless" })], [record]));
  assert.deepEqual(released?.releasedAt, toTimestamp(NOW_MS));
});

test("reserves a released address for its service, and forgets it when the reservation has expired", () => {
  const range = parseIpRange("192.0.2.1/32");
  assert.ok(range);
  const [record] = written(plan([service("a")], [], { virtualIps: range }));
  const [released] = written(plan([], record ? [record] : [], { virtualIps: range }));
  assert.ok(released);
  assert.deepEqual(described(plan([service("b")], [released], { virtualIps: range })), [
    "refuse b: no virtual IP is left in 192.0.2.1/32",
    "write b:",
  ]);
  const [again] = written(plan([service("a")], [released], { virtualIps: range }));
  assert.deepEqual(again?.virtualIps, record?.virtualIps);
  assert.equal(again?.releasedAt, undefined);
  const later = { virtualIps: range, nowMs: NOW_MS + KEEP_RELEASED_MS };
  assert.deepEqual(described(plan([], [released], later)), ["forget a"]);
  assert.deepEqual(plan([], [released], { ...later, nowMs: later.nowMs - 1 }), []);
});

test("assigns requested node ports, and free ones of the range, to one service for each protocol", () => {
  const ports = [port(80), port(53, "UDP"), port(53, "TCP", 30_053)];
  const [record] = written(plan([service("a", { type: "NodePort", ports })], []));
  assert.equal(record?.nodePorts.length, 3);
  assert.equal(record?.nodePorts[2]?.nodePort, 30_053);
  for (const { nodePort } of record?.nodePorts ?? []) assert.ok(nodePort >= 30_000 && nodePort <= 30_099);
  const other = service("b", { type: "NodePort", ports: [port(1, "TCP", 30_053), port(2, "UDP", 30_053)] });
  const steps = plan([service("a", { type: "NodePort", ports }), other], record ? [record] : []);
  assert.ok(described(steps).includes("refuse b: node port 30053/TCP belongs to service shop/a"));
  assert.deepEqual(
    written(steps)[0]?.nodePorts.map(({ nodePort, protocol }) => `${nodePort}/${protocol}`),
    ["30053/UDP"],
  );
});

test("reports an exhausted range of node ports", () => {
  const ports = Array.from({ length: 3 }, (_, index) => port(index + 1));
  const steps = plan([service("a", { type: "NodePort", ports })], [], { nodePorts: { first: 1, last: 2 } });
  assert.equal(described(steps)[0], "refuse a: no node port is left in 1-2");
  assert.equal(written(steps)[0]?.nodePorts.length, 2);
});

test("assigns a load balancer an address of each family in the pool, which it keeps, and reports an exhausted pool", () => {
  const pool = ranges("198.51.100.1-198.51.100.2", "2001:db8::1-2001:db8::1");
  const a = service("a", { type: "LoadBalancer" });
  const steps = plan([a], [], { loadBalancerIps: pool, nodes: [aNode("n1", "198.51.100.0/24")] });
  const [record] = written(steps);
  assert.ok(record);
  assert.match(record.loadBalancerIps.join(" "), /^198\.51\.100\.[12] 2001:db8::1$/);
  assert.deepEqual([record.announcedBy, record.announcedAlone, record.nodePorts], ["n1", true, []]);
  const b = service("b", { type: "LoadBalancer" });
  const c = service("c", { type: "LoadBalancer" });
  const more = plan([a, b, c], [record], { loadBalancerIps: pool, nodes: [aNode("n1", "198.51.100.0/24")] });
  assert.deepEqual(
    described(more)
      .filter((it) => it.startsWith("refuse"))
      .sort(),
    [
      "refuse b: no load balancer IP is left in 2001:db8::1-2001:db8::1",
      "refuse c: no load balancer IP is left in 198.51.100.1-198.51.100.2",
      "refuse c: no load balancer IP is left in 2001:db8::1-2001:db8::1",
    ],
  );
  assert.match(described(plan([a], [])).join(), /refuse a: .* services\.loadBalancerIps/);
});

test("assigns a load balancer its requested address unless it is in use, and another when the request changes", () => {
  const loadBalancerIps = ranges("198.51.100.0/24");
  const ask = (name: string, ip: string) => service(name, { type: "LoadBalancer", loadBalancerIps: [ip] });
  const [first, ...rest] = written(
    plan([ask("a", "198.51.100.9"), ask("b", "198.51.100.9")], [], { loadBalancerIps }),
  );
  assert.ok(first);
  assert.deepEqual(first.loadBalancerIps, ["198.51.100.9"]);
  assert.notEqual(rest[0]?.loadBalancerIps[0], "198.51.100.9");
  const [moved] = written(plan([ask("a", "198.51.100.10")], [first], { loadBalancerIps }));
  assert.deepEqual(moved?.loadBalancerIps, ["198.51.100.10"]);
  const outside = described(plan([ask("a", "203.0.113.1")], [first], { loadBalancerIps }));
  assert.deepEqual(outside, ["refuse a: load balancer IP 203.0.113.1 is not in 198.51.100.0/24", NO_NODE]);
});

test("never assigns a host's address to a service, even on request", () => {
  const loadBalancerIps = ranges("198.51.100.1-198.51.100.2");
  const hosts = [["198.51.100.1", "n1"]] as const;
  const wish = service("a", { type: "LoadBalancer", loadBalancerIps: ["198.51.100.1"] });
  const steps = plan([wish], [], { loadBalancerIps, hosts });
  assert.deepEqual(written(steps)[0]?.loadBalancerIps, ["198.51.100.2"]);
  assert.equal(described(steps)[0], "refuse a: load balancer IP 198.51.100.1 belongs to node n1");
});

test("replaces an address that the operator removes from the pool", () => {
  const [record] = written(
    plan([service("a", { type: "LoadBalancer" })], [], { loadBalancerIps: ranges("198.51.100.0/24") }),
  );
  assert.ok(record);
  const moved = plan([service("a", { type: "LoadBalancer" })], [record], {
    loadBalancerIps: ranges("203.0.113.0/24"),
  });
  assert.match(written(moved)[0]?.loadBalancerIps[0] ?? "", /^203\.0\.113\./);
});

test("reserves a load balancer's released address for its service for an hour", () => {
  const loadBalancerIps = ranges("198.51.100.1-198.51.100.1");
  const a = service("a", { type: "LoadBalancer" });
  const [record] = written(plan([a], [], { loadBalancerIps }));
  const [released] = written(plan([], record ? [record] : [], { loadBalancerIps }));
  assert.ok(released);
  const other = plan([service("b", { type: "LoadBalancer" })], [released], { loadBalancerIps });
  assert.deepEqual(written(other)[0]?.loadBalancerIps, []);
  assert.deepEqual(written(plan([a], [released], { loadBalancerIps }))[0]?.loadBalancerIps, ["198.51.100.1"]);
});

test("changes only the announcing node of a load balancer when that node is lost", () => {
  const loadBalancerIps = ranges("198.51.100.0/24");
  const web = service("web", { type: "LoadBalancer" });
  const [n1, n2] = [aNode("n1", "198.51.100.0/24"), aNode("n2", "198.51.100.0/24")];
  const [record] = written(plan([web], [], { loadBalancerIps, nodes: [n1, n2] }));
  assert.ok(record);
  const nodes = [n1, n2].map((it) => ({ ...it, ready: it.name !== record.announcedBy }));
  const [moved] = written(plan([web], [record], { loadBalancerIps, nodes }));
  assert.ok(moved);
  assert.deepEqual({ ...moved, announcedBy: "" }, { ...record, announcedBy: "" });
  assert.notEqual(moved.announcedBy, record.announcedBy);
  assert.deepEqual(plan([web], [moved], { loadBalancerIps, nodes: [n1, n2] }), [], "it doesn't move back");
});

test("never assigns an address to two services under random creations, requests and deletions", () => {
  for (let seed = 1; seed <= 40; seed++) {
    const random = randomOf(seed);
    const loadBalancerIps = ranges("198.51.100.1-198.51.100.6", "2001:db8::1-2001:db8::9");
    const records = new Map<string, ServiceAddressRecord>();
    let nowMs = 0;
    for (let step = 0; step < 60; step++) {
      const services = Array.from({ length: 8 }, (_, index) => index)
        .filter(() => random.chance(0.7))
        .map((index) =>
          service(`s${index}`, {
            type: random.chance(0.8) ? "LoadBalancer" : "ClusterIP",
            loadBalancerIps: random.chance(0.3) ? [`198.51.100.${1 + random.below(6)}`] : [],
          }),
        );
      nowMs += random.below(KEEP_RELEASED_MS);
      for (const it of plan(services, [...records.values()], { loadBalancerIps, nowMs })) {
        if (it.type === "write") records.set(it.record.name, it.record);
        else if (it.type === "forget") records.delete(it.name);
      }
      const given = [...records.values()].flatMap((it) => it.loadBalancerIps);
      assert.equal(new Set(given).size, given.length, `seed ${seed}, step ${step}: ${given.join(" ")}`);
    }
  }
});

const NO_NODE =
  "refuse a: no node can announce 198.51.100.9: no ready node is in its network (for networks that agents can't detect, set loadBalancer.interface in their configuration)";

function ranges(...texts: readonly string[]): IpRange[] {
  return texts.flatMap((text) => parseIpRange(text) ?? []);
}

function aNode(name: string, network: string): AnnouncingNode {
  const parsed = parseNetwork(network);
  assert.ok(parsed);
  return { name, ready: true, cordoned: false, draining: false, networks: [parsed] };
}

interface Ranges {
  virtualIps?: ReturnType<typeof parseIpRange>;
  virtualIps6?: readonly IpRange[];
  loadBalancerIps?: readonly IpRange[];
  nodes?: readonly AnnouncingNode[];
  hosts?: readonly (readonly [string, string])[];
  nodePorts?: { first: number; last: number };
  nowMs?: number;
}

function plan(
  services: readonly AddressedService[],
  records: readonly ServiceAddressRecord[],
  given: Ranges = {},
): AddressStep[] {
  const virtualIps = given.virtualIps ?? parseIpRange("10.96.0.0/16");
  assert.ok(virtualIps);
  const { loadBalancerIps = [], nodes = [], nodePorts = { first: 30_000, last: 30_099 } } = given;
  return planAddresses({
    services,
    records,
    virtualIps: [virtualIps, ...(given.virtualIps6 ?? [])],
    loadBalancerIps,
    nodes,
    hosts: new Map(given.hosts),
    nodePorts,
    nowMs: given.nowMs ?? NOW_MS,
  });
}

function service(name: string, fields: Partial<AddressedService> = {}): AddressedService {
  return { namespace: "shop", name, type: "ClusterIP", ports: [port(80)], loadBalancerIps: [], ...fields };
}

function port(number: number, protocol = "TCP", nodePort = 0): ServicePort {
  return ServicePort.fromPartial({ port: number, protocol, nodePort });
}

function written(steps: readonly AddressStep[]): ServiceAddressRecord[] {
  return steps.flatMap((step) =>
    step.type === "write" ? [ServiceAddressRecord.fromPartial(step.record)] : [],
  );
}

function described(steps: readonly AddressStep[]): string[] {
  return steps.map((step) => {
    if (step.type === "write") return `write ${step.record.name}:${step.record.virtualIps.join(",")}`;
    return step.type === "forget" ? `forget ${step.name}` : `refuse ${step.name}: ${step.why}`;
  });
}
