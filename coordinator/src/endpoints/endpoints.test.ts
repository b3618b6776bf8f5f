import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { aNode, aPod, aServiceEntry, aWorkloadEntry, type PodFields } from "../../test/support/entries.ts";
import { aView, type Contents } from "../../test/support/view.ts";
import { endpointsOf, readyEndpointCount, targetPortOf } from "./endpoints.ts";

const HTTP = { container: "main", containerPort: 8080, protocol: "TCP", hostPort: 20_001 };
const READY = { ready: true, hostPorts: [HTTP] };
const base = { resources: [aWorkloadEntry(), aServiceEntry()], nodes: [aNode()] };

describe("which pods are endpoints", () => {
  for (const [what, contents, expected] of [
    ["a ready pod", { pods: [pod("a", {})] }, ["a 192.0.2.1:20001"]],
    ["two, by name", { pods: [pod("b", {}), pod("a", {})] }, ["a 192.0.2.1:20001", "b 192.0.2.1:20001"]],
    ["one that isn't ready", { pods: [pod("a", { status: { ready: false, hostPorts: [HTTP] } })] }, []],
    ["one that is stopping", { pods: [pod("a", { stopping: true })] }, []],
    ["one of another workload", { pods: [pod("a", { workload: "other" })] }, []],
    ["one of another namespace", { pods: [pod("a", { namespace: "other" })] }, []],
    ["one of a job of that name", { pods: [pod("a", { kind: "job" })] }, []],
    ["one on a node that is lost", { pods: [pod("a", {})], nodes: [aNode({ ready: false })] }, []],
    ["one on a node without an address", { pods: [pod("a", {})], nodes: [aNode({ address: "" })] }, []],
    [
      "one without that port",
      { pods: [pod("a", { status: { ready: true, hostPorts: [{ ...HTTP, containerPort: 81 }] } })] },
      [],
    ],
    [
      "one with that port for another protocol",
      { pods: [pod("a", { status: { ready: true, hostPorts: [{ ...HTTP, protocol: "UDP" }] } })] },
      [],
    ],
    [
      "one of a service that is being removed",
      { pods: [pod("a", {})], resources: [aServiceEntry({ deleting: true })] },
      [],
    ],
    ["one of no service", { pods: [pod("a", {})], resources: [] }, []],
  ] as readonly (readonly [string, Contents, readonly string[]])[]) {
    test(what, async (t) => {
      const { state } = await aView(t, { ...base, ...contents });
      const found = endpointsOf(state, "shop", "web", 80);
      assert.deepEqual(
        found.map((e) => `${e.pod} ${e.address}:${e.port}`),
        expected,
      );
    });
  }
});

test("an endpoint contains its place", async (t) => {
  const nodes = [aNode({ labels: { "topology.kubernetes.io/zone": "a" } })];
  const { state } = await aView(t, { ...base, nodes, pods: [pod("a", {})] });
  assert.deepEqual(endpointsOf(state, "shop", "web", 80), [
    {
      address: "192.0.2.1",
      port: 20_001,
      pod: "a",
      node: "n1",
      zone: "a",
      workload: "web",
      protocol: "TCP",
      opaque: undefined,
      localOnly: false,
    },
  ]);
});

test("a port that the service doesn't list stands for itself", async (t) => {
  const { state } = await aView(t, { ...base, pods: [pod("a", {})] });
  assert.equal(endpointsOf(state, "shop", "web", 8080).length, 1);
  assert.equal(endpointsOf(state, "shop", "web", 81).length, 0);
});

test("a service's port leads to its target port, or to the same number", () => {
  const ports = [
    { name: "a", port: 80, targetPort: 8080, protocol: "", nodePort: 0 },
    { name: "b", port: 81, targetPort: 0, protocol: "", nodePort: 0 },
  ];
  assert.deepEqual(
    [80, 81, 82].map((port) => targetPortOf(ports, port)),
    [8080, 81, 82],
  );
});

test("of a port for several protocols that for TCP is meant", async (t) => {
  const ports = [
    { name: "dns", port: 53, protocol: "UDP", targetPort: 5353 },
    { name: "dns-tcp", port: 53, protocol: "TCP", targetPort: 8080 },
    { name: "log", port: 514, protocol: "UDP", targetPort: 5353 },
  ];
  const udp = { ...HTTP, containerPort: 5353, protocol: "UDP", hostPort: 20_002 };
  const resources = [aServiceEntry({ spec: { ports } })];
  const pods = [pod("a", { status: { ready: true, hostPorts: [udp, HTTP] } })];
  const { state } = await aView(t, { ...base, resources, pods });
  const found = (port: number) =>
    endpointsOf(state, "shop", "web", port).map((e) => `${e.port}/${e.protocol}`);
  assert.deepEqual([53, 514].map(found), [["20001/TCP"], ["20002/UDP"]]);
});

test("a pod that serves several ports is counted once", async (t) => {
  const metrics = { ...HTTP, containerPort: 9090, hostPort: 20_002 };
  const ports = [
    { name: "http", port: 80, targetPort: 8080 },
    { name: "metrics", port: 9090 },
  ];
  const { state } = await aView(t, {
    ...base,
    resources: [aServiceEntry({ spec: { ports } })],
    pods: [pod("a", { status: { ready: true, hostPorts: [HTTP, metrics] } }), pod("b", {})],
  });
  assert.equal(readyEndpointCount(state, "shop", "web"), 2);
  assert.equal(readyEndpointCount(state, "shop", "other"), 0);
});

function pod(name: string, fields: PodFields) {
  return aPod({ name, status: READY, ...fields });
}
