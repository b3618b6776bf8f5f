import assert from "node:assert/strict";
import { test } from "node:test";
import { type Random, randomOf } from "@forage/common/random";
import { Update } from "@forage/proto/destination";
import { aNode, aPod, aServiceEntry } from "../../test/support/entries.ts";
import { HandFedState } from "../../test/support/hand-fed-state.ts";
import { Deferred, HeldSink } from "../../test/support/held-sink.ts";
import { ReplayedClient } from "../../test/support/replayed-client.ts";
import { placeOf, reachableFrom } from "../destination/client-place.ts";
import { Directory } from "../destination/directory.ts";
import { getDestination } from "../destination/get.ts";
import { HintsCache } from "../destination/hints/hints-of.ts";
import { nearEndpoints } from "../destination/zone.ts";
import { zoneOfNode } from "../endpoints/change-keys.ts";
import { endpointsOf, findService } from "../endpoints/endpoints.ts";
import type { ClusterView } from "../state/cluster-view.ts";
import { Subscriber } from "./subscriber.ts";
import { TopicRegistry } from "./topic-registry.ts";

const DOMAIN = "cluster.local";
const CALLER = { type: "anonymous" } as const;

test("slow and fast clients have all endpoints after random changes", () => {
  for (let seed = 0; seed < 80; seed++) {
    const random = randomOf(seed);
    const world = new World();
    const clients = Array.from(
      { length: 6 },
      (_, index) => new Client(world, index % 2 === 0 ? `n${index}` : ""),
    );
    for (let step = 0; step < 60; step++) {
      change(world, random);
      if (random.chance(0.5)) world.deferred.runAll();
      for (const client of clients) if (random.chance(client.speed)) client.sink.accept();
      if (random.chance(0.05)) clients.push(new Client(world, random.pick(["", "n1", "n2", "n9"])));
      if (random.chance(0.05)) clients.splice(random.below(clients.length), 1)[0]?.close();
    }
    for (const client of clients) {
      // After the message in flight, the client gets one step with all removals and additions.
      const before = client.sink.messages.length;
      for (let round = 0; round < 20; round++) {
        world.deferred.runAll();
        client.sink.takeAll();
      }
      assert.ok(client.sink.messages.length - before <= 3, `seed ${seed}: one step to the newest state`);
      assert.deepEqual(client.replayed().known(), world.expected(client.node), `seed ${seed}`);
      const fresh = new Client({ directory: world.anotherDirectory() }, client.node);
      assert.deepEqual(client.replayed().everything(), fresh.replayed().everything(), `seed ${seed}`);
      fresh.close();
    }
    for (const client of clients) client.close();
    assert.deepEqual(
      world.directory.topics.size,
      { topics: 0, readers: 0, keys: 0 },
      "nothing is left behind",
    );
  }
});

test("publishes pods that only their own node can reach only to clients on that node", () => {
  const world = new World();
  world.fed.put({ nodes: [node(2, "a", true, true), node(3, "a", true, true)] });
  for (const index of [1, 2, 3]) world.put(index, true);
  const receivedOn = (nodeName: string): string[] =>
    new Client(world, nodeName)
      .replayed()
      .known()
      .map((text) => text.split(" ")[1] ?? "");
  assert.deepEqual(receivedOn(""), ["web-3@n1"]);
  assert.deepEqual(receivedOn("n1"), ["web-3@n1"]);
  assert.deepEqual(receivedOn("n2"), ["web-3@n1", "web-1@n2"]);
  assert.deepEqual(receivedOn("n3"), ["web-3@n1", "web-2@n3"]);
  const moved = new Client(world, "n2");
  world.fed.put({ nodes: [node(2, "a"), node(3, "a")] });
  for (let round = 0; round < 3; round++) {
    moved.sink.takeAll();
    world.deferred.runAll();
  }
  assert.equal(moved.replayed().known().length, 3, "once all are reached");
});

test("a stalled client gets one step, and its state is shared with other clients", () => {
  const world = new World();
  for (let index = 1; index <= 5; index++) world.put(index, true);
  const [stalled, attentive] = [new Client(world, ""), new Client(world, "")];
  stalled.sink.accept();
  for (let index = 0; index < 500; index++) {
    world.put(1 + (index % 5), index % 2 === 0);
    world.deferred.runAll();
    attentive.sink.takeAll();
  }
  assert.ok(attentive.sink.messages.length > 400, "it received each change");
  stalled.sink.takeAll();
  assert.ok(stalled.sink.messages.length <= 4, `${stalled.sink.messages.length} messages`);
  assert.deepEqual(stalled.replayed().everything(), attentive.replayed().everything());
  const [last, same] = [attentive.sink.messages.at(0), stalled.sink.messages.at(0)];
  assert.equal(last, same, "the very same bytes");
});

test("rejects streams beyond the limit, and accepts one again after another has ended", () => {
  const registry = new TopicRegistry({ defer: () => undefined, maxReaders: 2 });
  const subject = {
    key: "a",
    evaluate: () => ({ state: "state", dependsOn: ["b"] }),
    messages: () => [Buffer.from("message")],
  };
  const open = (): Subscriber<string> => new Subscriber(registry, { subject: () => subject }, new HeldSink());
  const [first] = [open(), open()];
  assert.throws(open, { code: "RESOURCE_EXHAUSTED" });
  first?.close();
  first?.close();
  open();
  assert.throws(open, { code: "RESOURCE_EXHAUSTED" });
  assert.deepEqual(registry.size, { topics: 1, readers: 2, keys: 1 });
});

test("wakes thousands of streams in groups over several turns of the event loop", async () => {
  const deferred = new Deferred();
  const registry = new TopicRegistry({ defer: deferred.defer });
  let state = "first";
  const subject = {
    key: "a",
    evaluate: () => ({ state, dependsOn: ["b"] }),
    messages: () => [Buffer.from(state)],
  };
  let woken = 0;
  for (let index = 0; index < 2500; index++) registry.read(subject, () => woken++);
  const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
  for (const expected of [1024, 2048, 2500]) {
    if (woken === 0) {
      state = "second";
      registry.changed(["b"]);
      assert.equal(woken, 0, "never at once");
    } else deferred.runAll();
    await turn();
    assert.equal(woken, expected);
  }
  assert.equal(deferred.pending, 0);
});

class World {
  readonly fed = new HandFedState({
    resources: [aServiceEntry()],
    nodes: [1, 2, 3].map((n) => node(n, "a")),
  });
  readonly deferred = new Deferred();
  readonly directory: Directory;
  readonly #hints = new HintsCache();

  constructor() {
    this.directory = this.anotherDirectory();
  }

  anotherDirectory(): Directory {
    return new Directory({
      state: this.state,
      domain: DOMAIN,
      virtualIps: () => [],
      defer: this.deferred.defer,
      soon: this.deferred.defer,
    });
  }

  get state(): ClusterView {
    return this.fed.state;
  }

  put(index: number, ready: boolean, hostPort = 20_000 + index): void {
    const hostPorts = [{ container: "main", containerPort: 8080, protocol: "TCP", hostPort }];
    this.fed.put({
      pods: [aPod({ name: `web-${index}`, node: `n${1 + (index % 3)}`, status: { ready, hostPorts } })],
    });
  }

  expected(clientNode: string): string[] {
    const service = findService(this.state, "shop", "web");
    const all = endpointsOf(this.state, "shop", "web", 80);
    const aware = service !== undefined && this.#hints.of(service.record).zoneAware;
    const client = this.state.node(clientNode);
    const reached = reachableFrom(placeOf(client), all);
    // Of two endpoints with one address, the last one counts.
    const byAddress = new Map(
      (aware ? nearEndpoints(reached, zoneOfNode(client)) : reached).map((e) => [
        `${e.address}:${e.port}`,
        `${e.pod}@${e.node}`,
      ]),
    );
    return [...byAddress].map(([address, pod]) => `${address} ${pod}`).sort();
  }
}

class Client {
  readonly sink = new HeldSink();
  readonly node: string;
  readonly close: () => void;
  readonly speed: number;

  constructor({ directory }: Pick<World, "directory">, nodeName: string) {
    this.node = nodeName;
    this.speed = [0, 0.05, 0.3, 1][directory.topics.size.readers % 4] ?? 1;
    const contextToken = nodeName === "" ? "{garbage" : JSON.stringify({ ns: "shop", nodeName, pod: "p" });
    const request = { scheme: "k8s", path: `web.shop.svc.${DOMAIN}`, contextToken };
    const context = { caller: CALLER, method: "", peer: "" };
    this.close = getDestination(request, context, this.sink, { directory, authorize: false });
    assert.equal(this.sink.messages.length, 1, "the first message comes at once");
  }

  replayed(): ReplayedClient {
    const client = new ReplayedClient();
    for (const message of this.sink.messages) client.apply(Update.decode(message));
    return client;
  }
}

function change(world: World, random: Random): void {
  const index = 1 + random.below(8);
  const changes: (() => void)[] = [
    () => world.fed.remove(`pods/shop/web-${index}`, `statuses/shop/web-${index}`),
    () => world.fed.put({ nodes: [node(1 + random.below(3), random.pick(["a", "b", ""]))] }),
    () => world.fed.put({ nodes: [node(1 + random.below(3), "a", random.chance(0.5))] }),
    () => world.fed.put({ nodes: [node(1 + random.below(3), "a", true, random.chance(0.7))] }),
    () => world.fed.put({ resources: [aServiceEntry({ deleting: random.chance(0.5) })] }),
    () => world.fed.put({ resources: [aServiceEntry({ spec: { annotations: random.pick(ANNOTATIONS) } })] }),
    // Reuses an address that may belong to a pod that still exists.
    () => world.put(index, true, 20_001 + random.below(8)),
    () => world.put(index, random.chance(0.7)),
    () => world.put(index, random.chance(0.7)),
    () => world.put(index, random.chance(0.7)),
  ];
  random.pick(changes)();
}

const ANNOTATIONS = [{}, { "forage.dev/topology-mode": "Disabled" }, { "forage.dev/protocol": "http2" }];

function node(index: number, zone: string, ready = true, local = false) {
  const labels = {
    ...(zone !== "" && { "topology.kubernetes.io/zone": zone }),
    ...(local && { "forage.dev/reachability": "local" }),
  };
  return aNode({ name: `n${index}`, address: `192.0.2.${index}`, labels, ready });
}
