import assert from "node:assert/strict";
import { test } from "node:test";
import { ServiceAddressRecord } from "@forage/proto/forage/store/v1/store";
import { ServicePort } from "@forage/proto/forest/v1/forage";
import { toTimestamp } from "../../model/timestamp.ts";
import type { AnnouncingNode } from "./announcer.ts";
import { type IpRange, parseIpRange } from "./ip-range.ts";
import { type AddressedService, type AddressStep, keepReleasedMs, planAddresses } from "./plan.ts";

const nowMs = 10_000_000;

test("each service gets an address of its own, and keeps it", () => {
  const services = Array.from({ length: 200 }, (_, index) => service(`s${index}`));
  const records = written(plan(services, []));
  assert.equal(records.length, 200);
  assert.equal(new Set(records.flatMap(({ virtualIps }) => virtualIps)).size, 200);
  assert.deepEqual(plan(services, records), []);
  const more = written(plan([...services, service("late")], records));
  assert.equal(more.length, 1);
  assert.ok(!records.some(({ virtualIps }) => virtualIps[0] === more[0]?.virtualIps[0]));
});

test("with a second range services have an address of each family, those that are there already, too", () => {
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
  // The range is taken out of the configuration: what it gave leads nowhere.
  assert.deepEqual(
    written(plan([service("a"), service("b")], [after, other])).map(({ virtualIps }) => virtualIps.length),
    [1, 1],
  );
});

test("a range of IPv6 that is used up is told, and what there is of IPv4 is given", () => {
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

test("headless services get none, and one that becomes headless gives its address up", () => {
  assert.deepEqual(plan([service("a", { type: "Headless" })], []), []);
  const [record] = written(plan([service("a")], []));
  assert.ok(record);
  const [released] = written(plan([service("a", { type: "Headless" })], [record]));
  assert.deepEqual(released?.releasedAt, toTimestamp(nowMs));
});

test("an address stays away from others for a while, comes back to its own service, and is then forgotten", () => {
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
  const later = { virtualIps: range, nowMs: nowMs + keepReleasedMs };
  assert.deepEqual(described(plan([], [released], later)), ["forget a"]);
  assert.deepEqual(plan([], [released], { ...later, nowMs: later.nowMs - 1 }), []);
});

test("node ports: those asked for, others from the range, never the same for two, apart by protocol", () => {
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

test("node ports run out with a word", () => {
  const ports = Array.from({ length: 3 }, (_, index) => port(index + 1));
  const steps = plan([service("a", { type: "NodePort", ports })], [], { nodePorts: { first: 1, last: 2 } });
  assert.equal(described(steps)[0], "refuse a: no node port is left in 1-2");
  assert.equal(written(steps)[0]?.nodePorts.length, 2);
});

interface Ranges {
  virtualIps?: ReturnType<typeof parseIpRange>;
  virtualIps6?: readonly IpRange[];
  loadBalancerIps?: readonly IpRange[];
  nodes?: readonly AnnouncingNode[];
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
    nodePorts,
    nowMs: given.nowMs ?? nowMs,
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
