import assert from "node:assert/strict";
import { test } from "node:test";
import { randomOf } from "@forage/common/random";
import { ConnectResponse, type ServiceState } from "@forage/proto/forage/agent/v1/agent";
import { aNode, aPod, aServiceEntry } from "../../test/support/entries.ts";
import { HandFedState } from "../../test/support/hand-fed-state.ts";
import { poison } from "../../test/support/poison.ts";
import { type BuiltInService, BuiltInServices } from "../model/built-in-service.ts";
import { ServiceTable } from "./service-table.ts";

const ready = (containerPort = 8080, hostPort = 20_000) => ({
  ready: true,
  podIp: "10.64.0.2",
  hostPorts: [{ container: "main", containerPort, protocol: "TCP", hostPort }],
});

test("sends a new reader everything, and others the changes", () => {
  const { fed, table, received } = start({
    nodes: [aNode({ name: "n1" })],
    resources: [aServiceEntry({ name: "web" })],
    pods: [aPod({ name: "web-1", status: ready() })],
  });
  const first = received(undefined);
  assert.equal(first.full, true);
  assert.deepEqual([...first.services.keys()], ["shop/web"]);
  assert.deepEqual(first.services.get("shop/web")?.endpoints, [
    {
      pod: "web-1",
      node: "n1",
      podIp: "10.64.0.2",
      hostIp: "192.0.2.1",
      local: false,
      hostPorts: [20_000],
      hostNetwork: false,
      podIpv6: "",
      hostIpv6: "",
    },
  ]);
  assert.deepEqual(table.after(first.version).messages, []);
  fed.put({ resources: [aServiceEntry({ name: "api", spec: { target: "api" } })] });
  const second = received(first.version);
  assert.equal(second.full, false);
  assert.deepEqual([...second.services.keys()], ["shop/api"]);
  fed.put({ pods: [aPod({ name: "web-1", status: ready(8080, 20_001) })] });
  assert.deepEqual([...received(second.version).services.keys()], ["shop/web"]);
  assert.deepEqual([...received(first.version).services.keys()].sort(), ["shop/api", "shop/web"]);
  fed.remove("resources/shop/service/api");
  assert.deepEqual(received(second.version).removals, ["shop/api"]);
});

test("publishes addresses of both families if pods and nodes have both", () => {
  const dual = { ...ready(), podIps: ["10.64.0.2", "fd64::2"] };
  const addresses = ["192.0.2.1", "2001:db8::1"];
  const { fed, received } = start({
    nodes: [aNode({ name: "n1", addresses }), aNode({ name: "n2", addresses }), aNode({ name: "n3" })],
    resources: [aServiceEntry({ name: "web" })],
    pods: [
      aPod({ name: "web-1", node: "n1", status: dual }),
      aPod({ name: "web-2", node: "n2", status: ready() }),
      aPod({ name: "web-3", node: "n3", status: dual }),
    ],
  });
  const first = received(undefined);
  const sixes = (services: ReadonlyMap<string, ServiceState>) =>
    services.get("shop/web")?.endpoints.map(({ podIpv6, hostIpv6 }) => [podIpv6, hostIpv6]);
  assert.deepEqual(sixes(first.services), [
    ["fd64::2", "2001:db8::1"],
    ["", ""],
    ["fd64::2", ""],
  ]);
  fed.put({ nodes: [aNode({ name: "n3", addresses: ["192.0.2.1", "2001:db8::3"] })] });
  assert.deepEqual(sixes(received(first.version).services)?.[2], ["fd64::2", "2001:db8::3"]);
});

test("wakes no reader for a change without an effect", () => {
  const { fed, table } = start({ nodes: [aNode()], resources: [aServiceEntry({ name: "web" })] });
  let woken = 0;
  table.read(() => woken++);
  fed.put({ pods: [aPod({ name: "other-1", workload: "other", status: ready() })] });
  fed.put({ pods: [aPod({ name: "web-1", status: { ready: false } })] });
  fed.put({ nodes: [aNode()] });
  assert.equal(woken, 0);
  fed.put({ pods: [aPod({ name: "web-1", status: ready() })] });
  assert.equal(woken, 1);
  fed.put({ nodes: [aNode({ ready: false })] });
  assert.equal(woken, 2);
});

test("publishes a large snapshot in parts that count as one", () => {
  const resources = Array.from({ length: 50 }, (_, index) => aServiceEntry({ name: `s${index}` }));
  const { table, received } = start({ resources }, 500);
  assert.ok(table.after(undefined).messages.length > 3);
  assert.equal(received(undefined).services.size, 50);
});

test("reaches the same state by any sequence of deltas as by a snapshot", () => {
  const random = randomOf(7);
  const { fed, received } = start({ nodes: [aNode({ name: "n1" }), aNode({ name: "n2" })] });
  const readers = Array.from({ length: 5 }, () => ({
    services: new Map<string, ServiceState>(),
    version: undefined as number | undefined,
  }));
  const pick = (count: number): number => random.below(count);
  for (let step = 0; step < 400; step++) {
    const name = `s${pick(6)}`;
    const what = random.next();
    if (what < 0.15) fed.remove(`resources/shop/service/${name}`);
    else if (what < 0.4) fed.put({ resources: [aServiceEntry({ name, spec: { target: `w${pick(3)}` } })] });
    else if (what < 0.5) fed.put({ nodes: [aNode({ name: `n${1 + pick(2)}`, ready: random.chance(0.7) })] });
    else {
      const workload = `w${pick(3)}`;
      const status = random.chance(0.7) ? ready(8080, 20_000 + pick(5)) : { ready: false };
      fed.put({
        pods: [aPod({ name: `${workload}-${pick(4)}`, workload, node: `n${1 + pick(2)}`, status })],
      });
    }
    for (const reader of readers) {
      if (random.chance(0.6)) continue;
      const news = received(reader.version);
      if (news.full) reader.services.clear();
      for (const key of news.removals) reader.services.delete(key);
      for (const [key, service] of news.services) reader.services.set(key, service);
      reader.version = news.version;
      const whole = received(undefined).services;
      assert.deepEqual(new Map([...reader.services].sort()), new Map([...whole].sort()), `step ${step}`);
    }
  }
});

test("keeps the published state of an unreadable service, and publishes others", () => {
  const { fed, received } = start({
    nodes: [aNode({ name: "n1" })],
    resources: ["a", "bad", "z"].map((name) => aServiceEntry({ name, spec: { target: name } })),
    pods: ["a", "bad", "z"].map((name) => aPod({ name: `${name}-1`, workload: name, status: ready() })),
  });
  const first = received(undefined);
  poison(fed.state.resource("resources/shop/service/bad")?.record, "resource");
  fed.put({
    pods: ["a", "bad", "z"].map((name) => aPod({ name: `${name}-2`, workload: name, status: ready() })),
  });
  const second = received(first.version);
  assert.deepEqual([...second.services.keys()], ["shop/a", "shop/z"]);
  assert.deepEqual(second.removals, []);
  assert.deepEqual([...received(undefined).services.keys()].sort(), ["shop/a", "shop/bad", "shop/z"]);
});

test("publishes a built-in service until a service of the same name is applied", () => {
  const { fed, received } = start({ nodes: [aNode({ name: "n1" })] }, undefined, [
    { namespace: "shop", name: "own", port: 8_443, addresses: ["192.0.2.9"] },
  ]);
  const first = received(undefined);
  const own = first.services.get("shop/own");
  assert.deepEqual([own?.type, own?.virtualIps], ["Headless", []]);
  assert.partialDeepStrictEqual(own?.endpoints, [
    { hostIp: "192.0.2.9", hostPorts: [8_443], hostNetwork: true },
  ]);
  fed.put({ resources: [aServiceEntry({ name: "own", spec: { target: "web" } })] });
  const second = received(first.version);
  assert.equal(second.services.get("shop/own")?.type, "ClusterIP");
  fed.remove("resources/shop/service/own");
  assert.deepEqual(received(second.version).services.get("shop/own"), own);
});

function start(
  contents: ConstructorParameters<typeof HandFedState>[0],
  partBytes?: number,
  builtIn: readonly BuiltInService[] = [],
) {
  const fed = new HandFedState(contents);
  const table = new ServiceTable({
    state: fed.state,
    domain: "cluster.local",
    virtualIpRanges: ["10.96.0.0/16"],
    defer: (run) => run(),
    builtIn: new BuiltInServices(builtIn),
    ...(partBytes !== undefined && { partBytes }),
  });
  const received = (from: number | undefined) => {
    const { version, messages } = table.after(from);
    const services = new Map<string, ServiceState>();
    const removals: string[] = [];
    let full = false;
    for (const [index, message] of messages.entries()) {
      const decoded = ConnectResponse.decode(message).message;
      assert.equal(decoded?.$case, "services");
      assert.equal(decoded.value.more, index < messages.length - 1);
      full ||= decoded.value.full;
      for (const service of decoded.value.upserts)
        services.set(`${service.namespace}/${service.name}`, service);
      removals.push(...decoded.value.removals.map((ref) => `${ref.namespace}/${ref.name}`));
    }
    return { version, full, services, removals };
  };
  return { fed, table, received };
}
