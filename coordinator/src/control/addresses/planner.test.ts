import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { type Random, randomOf } from "@forage/common/random";
import type { ServiceAddressRecord } from "@forage/proto/forage/store/v1/store";
import { ServicePort } from "@forage/proto/forest/v1/forage";
import { parseIpRange } from "../../ip/ip-range.ts";
import type { AddressedService, AddressRanges, AddressStep } from "./draft.ts";
import { type AnnouncingNode, parseNetwork } from "./node-networks.ts";
import { planAddresses } from "./plan.ts";
import { AddressPlanner, KEEP_RELEASED_MS } from "./planner.ts";

const SEEDS = 200;
const CHANGES = 40;

test("incremental plans converge to a state that a complete plan leaves unchanged", () => {
  for (let seed = 1; seed <= SEEDS; seed++) {
    const random = randomOf(seed);
    const world = new World(random);
    for (let change = 0; change < CHANGES; change++) {
      world.disturb();
      if (random.chance(0.6)) world.settle(`seed ${seed}, change ${change}`);
    }
  }
});

test("evaluates only the service that changed", () => {
  const planner = new AddressPlanner(ranges("10.96.0.0/16", "192.0.2.0/24"));
  for (let index = 0; index < 500; index++) planner.setService(`shop/s${index}`, aService(`s${index}`));
  write(planner, planner.plan(1).steps);
  planner.plan(1);
  planner.setService("shop/s7", aService("s7", { type: "NodePort" }));
  assert.deepEqual(planner.plan(1).keys, ["shop/s7"]);
});

describe("evaluates only the load balancers that a node's change affects", () => {
  for (const [what, change, expected] of [
    ["a node that announces load balancers is lost", { name: "n1", ready: false }, "those of n1"],
    ["a node that announces load balancers is drained", { name: "n1", draining: true }, "those of n1"],
    ["a node that announces load balancers is cordoned", { name: "n1", cordoned: true }, "those of n1"],
    ["another node joins", { name: "n9" }, "none"],
  ] as const) {
    test(what, () => {
      const { planner, records } = balanced(200, 5);
      planner.setNode(change.name, { ...goodNode(change.name), ...change });
      const own = records().filter(({ announcedBy }) => announcedBy === "n1");
      assert.ok(own.length > 0);
      const names = expected === "none" ? [] : own.map(({ name }) => `shop/${name}`).sort();
      assert.deepEqual(planner.plan(1).keys, names);
    });
  }

  test("one of two nodes is removed: all load balancers are announced by the other alone", () => {
    const { planner } = balanced(20, 2);
    planner.setNode("n1", undefined);
    const { keys, steps } = planner.plan(1);
    assert.equal(keys.length, 20);
    assert.ok(steps.every((step) => step.type === "write" && step.record.announcedAlone));
  });

  test("spreads the load balancers of a lost node evenly over the remaining nodes", () => {
    const { planner, records } = balanced(200, 5);
    planner.setNode("n1", { ...goodNode("n1"), ready: false });
    write(planner, planner.plan(1).steps, records);
    const counts = ["n0", "n2", "n3", "n4"].map(
      (node) => records().filter(({ announcedBy }) => announcedBy === node).length,
    );
    assert.deepEqual(counts, [50, 50, 50, 50]);
  });
});

test("an error in one service doesn't affect the addresses of others", () => {
  const failed: string[] = [];
  const planner = new AddressPlanner(ranges("10.96.0.0/16", "192.0.2.0/24"), ({ name }, step) => {
    try {
      return step();
    } catch {
      failed.push(name);
      return undefined;
    }
  });
  const poison: AddressedService = {
    ...aService("poison"),
    get ports(): never {
      throw new Error("poison");
    },
    type: "NodePort",
  };
  for (const service of [aService("a"), poison, aService("b")])
    planner.setService(`shop/${service.name}`, service);
  const names = planner.plan(1).steps.flatMap((step) => (step.type === "write" ? step.record.name : []));
  assert.deepEqual(names, ["a", "b"]);
  assert.deepEqual(failed, ["poison"]);
});

test("after a change of the ranges, replaces only addresses and ports outside the new ranges", () => {
  const services = [aService("a"), aService("b", { type: "NodePort" })];
  const before = planAll(services, [], ranges("10.96.0.0/16", "192.0.2.0/24"));
  const moved = planAll(services, before, {
    ...ranges("10.97.0.0/16", "192.0.2.0/24"),
    nodePorts: { first: 31_000, last: 31_100 },
  });
  assert.equal(moved.length, 2);
  for (const { virtualIps } of moved) assert.match(virtualIps[0] ?? "", /^10\.97\./);
  const [, ported] = moved;
  assert.ok(
    (ported?.nodePorts[0]?.nodePort ?? 0) >= 31_000 && (ported?.nodePorts[0]?.nodePort ?? 0) <= 31_100,
  );
  assert.deepEqual(planAll(services, before, ranges("10.96.0.0/12", "192.0.2.0/24")), [], "a wider one");
});

function planAll(
  services: readonly AddressedService[],
  records: readonly ServiceAddressRecord[],
  given: AddressRanges,
): ServiceAddressRecord[] {
  const steps = planAddresses({ ...given, services, records, nodes: [], hosts: new Map(), nowMs: 1 });
  return steps.flatMap((step) => (step.type === "write" ? step.record : []));
}

class World {
  readonly #random: Random;
  readonly #ranges = ranges("10.96.0.0/29", "192.0.2.0/30");
  readonly #services = new Map<string, AddressedService>();
  readonly #records = new Map<string, ServiceAddressRecord>();
  readonly #planner: AddressPlanner;
  #nodes: readonly AnnouncingNode[] = [];
  #nowMs = 1;

  constructor(random: Random) {
    this.#random = random;
    this.#planner = new AddressPlanner(this.#ranges);
  }

  disturb(): void {
    const random = this.#random;
    const name = `s${random.below(9)}`;
    const key = `shop/${name}`;
    const kind = random.next();
    if (kind < 0.6)
      this.#set(
        key,
        aService(name, { type: random.pick(["ClusterIP", "NodePort", "LoadBalancer", "Headless"]) }),
      );
    else if (kind < 0.8) this.#set(key, undefined);
    else if (kind < 0.9) this.#nowMs += random.below(KEEP_RELEASED_MS);
    else this.#setNodes(Array.from({ length: random.below(4) }, (_, index) => aNode(`n${index}`, random)));
  }

  /** Executes plans until they are empty, with some writes failing, and asserts that a complete plan is empty too. */
  settle(at: string): void {
    for (let round = 0; round < 20; round++) {
      const steps = this.#planner.plan(this.#nowMs).steps.filter(({ type }) => type !== "refuse");
      if (steps.length === 0) break;
      for (const step of steps) {
        const { namespace, name } = step.type === "write" ? step.record : step;
        if (this.#random.chance(0.2)) this.#planner.touch(`${namespace}/${name}`);
        else this.#write(step);
      }
    }
    const left = planAddresses({
      ...this.#ranges,
      services: [...this.#services.values()],
      records: [...this.#records.values()],
      nodes: this.#nodes,
      hosts: new Map(),
      nowMs: this.#nowMs,
    });
    assert.deepEqual(
      left.filter(({ type }) => type !== "refuse"),
      [],
      at,
    );
  }

  #set(key: string, service: AddressedService | undefined): void {
    if (service === undefined) this.#services.delete(key);
    else this.#services.set(key, service);
    this.#planner.setService(key, service);
  }

  #setNodes(nodes: readonly AnnouncingNode[]): void {
    this.#nodes = nodes;
    this.#planner.setNodes(nodes, new Map());
  }

  #write(step: AddressStep): void {
    if (step.type === "refuse") return;
    const { namespace, name } = step.type === "write" ? step.record : step;
    const key = `${namespace}/${name}`;
    const record = step.type === "write" ? step.record : undefined;
    if (record === undefined) this.#records.delete(key);
    else this.#records.set(key, record);
    this.#planner.setRecord(key, record);
  }
}

/** Returns a planner with this many stored load balancers on this many nodes of one network. */
function balanced(services: number, nodes: number) {
  const planner = new AddressPlanner(ranges("10.96.0.0/16", "192.0.2.0/24"));
  for (let index = 0; index < nodes; index++) planner.setNode(`n${index}`, goodNode(`n${index}`));
  for (let index = 0; index < services; index++)
    planner.setService(`shop/s${index}`, aService(`s${index}`, { type: "LoadBalancer" }));
  const known = new Map<string, ServiceAddressRecord>();
  const records = Object.assign(() => [...known.values()], { known });
  write(planner, planner.plan(1).steps, records);
  assert.deepEqual(planner.plan(1).steps, []);
  return { planner, records };
}

function goodNode(name: string): AnnouncingNode {
  const network = parseNetwork("192.0.2.0/24");
  return { name, ready: true, cordoned: false, draining: false, networks: network ? [network] : [] };
}

function write(
  planner: AddressPlanner,
  steps: readonly AddressStep[],
  records?: { readonly known: Map<string, ServiceAddressRecord> },
): void {
  for (const step of steps) if (step.type === "write") records?.known.set(step.record.name, step.record);
  for (const step of steps)
    if (step.type === "write") planner.setRecord(`${step.record.namespace}/${step.record.name}`, step.record);
}

function ranges(virtual: string, balanced: string): AddressRanges {
  const [virtualIps, loadBalancerIps] = [parseIpRange(virtual), parseIpRange(balanced)];
  assert.ok(virtualIps && loadBalancerIps);
  return {
    virtualIps: [virtualIps],
    loadBalancerIps: [loadBalancerIps],
    nodePorts: { first: 30_000, last: 30_003 },
  };
}

function aService(name: string, fields: Partial<AddressedService> = {}): AddressedService {
  const ports = [ServicePort.fromPartial({ name: "http", port: 80 })];
  return { namespace: "shop", name, type: "ClusterIP", ports, loadBalancerIps: [], ...fields };
}

function aNode(name: string, random: Random): AnnouncingNode {
  const network = parseNetwork(random.pick(["192.0.2.0/24", "192.0.2.0/31", "198.51.100.0/24"]));
  return {
    name,
    ready: random.chance(0.7),
    cordoned: random.chance(0.2),
    draining: random.chance(0.2),
    networks: network === undefined ? [] : [network],
  };
}
