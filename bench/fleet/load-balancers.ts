import { ServicePort } from "@forage/proto/forest/v1/forage";
import type { AddressStep } from "../../coordinator/src/control/addresses/draft.ts";
import { type AnnouncingNode, parseNetwork } from "../../coordinator/src/control/addresses/node-networks.ts";
import { AddressPlanner } from "../../coordinator/src/control/addresses/planner.ts";
import { parseIpRange } from "../../coordinator/src/ip/ip-range.ts";

const CHANGES = 200;
const network = parseNetwork("10.0.0.0/8");

/** Measures the cost of planning load balancers' addresses when one node of the fleet is lost or returns. */
export function measureLoadBalancers(nodes: number, services: number, result: Record<string, number>): void {
  const planner = new AddressPlanner({
    virtualIps: [rangeOf("172.16.0.0/12")],
    loadBalancerIps: [rangeOf("10.200.0.0/16")],
    nodePorts: { first: 30_000, last: 32_767 },
  });
  for (let index = 0; index < nodes; index++) planner.setNode(`n${index}`, aNode(index, true));
  const ports = [ServicePort.fromPartial({ name: "http", port: 80 })];
  for (let index = 0; index < services; index++) {
    const name = `s${index}`;
    const service = { namespace: "bench", name, type: "LoadBalancer", ports, loadBalancerIps: [] };
    planner.setService(`bench/${name}`, service);
  }
  write(planner, planner.plan(1).steps);
  planner.plan(1);
  const before = process.cpuUsage();
  for (let change = 0; change < CHANGES; change++) {
    const index = (Math.floor(change / 2) * 7919) % nodes;
    planner.setNode(`n${index}`, aNode(index, change % 2 === 1));
    write(planner, planner.plan(1).steps);
    planner.plan(1);
  }
  const { user, system } = process.cpuUsage(before);
  result[`${services} load balancers, ${nodes} nodes: processor time a change of one node (µs)`] =
    (user + system) / CHANGES;
}

function write(planner: AddressPlanner, steps: readonly AddressStep[]): void {
  for (const step of steps) {
    if (step.type !== "write") throw new Error(`an address is missing: ${step.type}`);
    planner.setRecord(`bench/${step.record.name}`, step.record);
  }
}

function rangeOf(text: string) {
  const range = parseIpRange(text);
  if (range === undefined) throw new Error(`${text} is no range`);
  return range;
}

function aNode(index: number, ready: boolean): AnnouncingNode {
  const networks = network === undefined ? [] : [network];
  return { name: `n${index}`, ready, cordoned: false, draining: false, networks };
}
