import assert from "node:assert/strict";
import { test } from "node:test";
import { type Random, randomOf } from "@forage/common/random";
import { PodPhase } from "@forage/proto/forage/agent/v1/agent";
import { ServiceAddressRecord } from "@forage/proto/forage/store/v1/store";
import { aNode, aPod, aRouteEntry, aServiceEntry } from "../../test/support/entries.ts";
import { HandFedState } from "../../test/support/hand-fed-state.ts";
import { Deferred, HeldSink } from "../../test/support/held-sink.ts";
import { encodeRecord } from "../model/codec.ts";
import { serviceAddressKey } from "../model/keys.ts";
import { Directory } from "./directory.ts";
import { getProfile } from "./get-profile.ts";

const DOMAIN = "cluster.local";
const POD_IPS = ["10.4.0.1", "10.4.0.2"];
const HOST_IPS = ["192.0.2.1", "192.0.2.2", "192.0.2.3"];
const VIRTUAL_IPS = ["10.96.0.1", "10.96.0.2"];
const SERVICES = ["web", "db"];
const paths = [
  ...POD_IPS.map((ip) => `${ip}:8080`),
  ...HOST_IPS.map((ip) => `${ip}:20001`),
  ...VIRTUAL_IPS.map((ip) => `${ip}:80`),
  ...SERVICES.map((name) => `${name}.shop.svc.${DOMAIN}:80`),
  `p1.db.shop.svc.${DOMAIN}:80`,
];

test("sends slow and fast clients the profile that a new client receives, after any changes", () => {
  for (let seed = 0; seed < 60; seed++) {
    const random = randomOf(seed);
    const world = new World();
    let clients = Array.from({ length: 12 }, () => new Client(world.directory, random));
    for (let step = 0; step < 60; step++) {
      change(world, random);
      if (random.chance(0.5)) world.deferred.runAll();
      for (const client of clients) if (random.chance(client.speed)) client.sink.accept();
    }
    for (let round = 0; round < 10; round++) {
      world.deferred.runAll();
      for (const client of clients) client.sink.takeAll();
    }
    const open = clients.filter((client) => !client.close());
    assert.deepEqual(
      world.directory.topics.size,
      { topics: 0, readers: 0, keys: 0 },
      "nothing is left behind",
    );
    for (const { path, node, last } of open) {
      const fresh = new Client(world.another(), random, path, node);
      assert.equal(fresh.sink.failure, undefined, `seed ${seed}: ${path} from ${node} should have failed`);
      assert.deepEqual(last(), fresh.last(), `seed ${seed}: ${path} from ${node}`);
    }
    clients = [];
  }
});

test("evaluates a virtual IP's profile once for clients on all nodes, and not after changes of other services", () => {
  const world = new World();
  const random = randomOf(0);
  world.fed.put({ resources: [aServiceEntry({ name: "web" })] });
  world.address("web", "10.96.0.1", false);
  const clients = ["", "n1", "n2"].map((node) => new Client(world.directory, random, "10.96.0.1:80", node));
  assert.deepEqual([world.directory.topics.size.topics, world.directory.topics.size.readers], [1, 3]);
  world.deferred.runAll();
  world.fed.put({ resources: [aServiceEntry({ name: "db" })] });
  world.address("db", "10.96.0.2", false);
  assert.equal(world.deferred.pending, 0);
  world.address("web", "10.96.0.1", true);
  assert.equal(world.deferred.pending, 1);
  for (const client of clients) client.close();
});

class World {
  readonly fed = new HandFedState({
    nodes: [1, 2].map((n) => aNode({ name: `n${n}`, address: `192.0.2.${n}` })),
  });
  readonly deferred = new Deferred();
  readonly directory = this.another();

  another(): Directory {
    const { state } = this.fed;
    const virtualIps = (ip: string) =>
      state.serviceAddresses
        .group(`ip:${ip}`)
        .filter(({ record }) => record.releasedAt === undefined)
        .map(({ record: { namespace, name } }) => ({ namespace, service: name }));
    return new Directory({
      state,
      domain: DOMAIN,
      virtualIps,
      defer: this.deferred.defer,
      soon: this.deferred.defer,
    });
  }

  address(name: string, ip: string, released: boolean): void {
    const releasedAt = released ? { seconds: 1n } : undefined;
    const record = ServiceAddressRecord.fromPartial({
      namespace: "shop",
      name,
      virtualIps: [ip],
      releasedAt,
    });
    const value = encodeRecord(ServiceAddressRecord, record);
    this.fed.write({ type: "put", key: serviceAddressKey("shop", name), value });
  }
}

class Client {
  readonly sink = new HeldSink();
  readonly path: string;
  readonly node: string;
  readonly speed: number;
  readonly #close: () => void;

  constructor(
    directory: Directory,
    random: Random,
    path = random.pick(paths),
    node = random.pick(["", "n1", "n2"]),
  ) {
    this.path = path;
    this.node = node;
    this.speed = random.pick([0, 0.1, 1]);
    const request = { scheme: "", path, contextToken: JSON.stringify({ nodeName: node }) };
    const context = { caller: { type: "anonymous" } as const, method: "", peer: "" };
    this.#close = getProfile(request, context, this.sink, { directory, authorize: false });
  }

  readonly last = (): string => this.sink.messages.at(-1)?.toString("hex") ?? "";

  /** Closes the stream. Reports whether it had failed, as for an address of several pods. */
  close(): boolean {
    this.#close();
    return this.sink.failure !== undefined;
  }
}

function change(world: World, random: Random): void {
  const { fed } = world;
  const name = `p${1 + random.below(3)}`;
  const service = random.pick(SERVICES);
  const host = () =>
    aNode({ name: `n${1 + random.below(2)}`, address: random.pick(HOST_IPS), labels: zone(random) });
  const changes: (() => void)[] = [
    () => fed.put({ pods: [aRandomPod(name, random)] }),
    () => fed.put({ pods: [aRandomPod(name, random)] }),
    () => fed.remove(`pods/shop/${name}`, `statuses/shop/${name}`),
    () => fed.put({ nodes: [host()] }),
    () => fed.put({ resources: [aRandomService(service, random)] }),
    () => fed.remove(`resources/shop/service/${service}`),
    () => world.address(service, random.pick(VIRTUAL_IPS), random.chance(0.3)),
    () =>
      fed.put({
        resources: [aRouteEntry({ name: "r", spec: { targetService: service, rules: rules(random) } })],
      }),
    () => fed.remove("resources/shop/route/r"),
  ];
  random.pick(changes)();
}

function aRandomPod(name: string, random: Random) {
  const phase = random.chance(0.7) ? PodPhase.RUNNING : PodPhase.PENDING;
  const hostPort = 20_001 + random.below(2);
  const hostPorts = [{ container: "main", containerPort: 8080, protocol: "TCP", hostPort }];
  const status = { phase, ready: random.chance(0.5), podIp: random.pick(POD_IPS), hostPorts };
  return aPod({ name, node: `n${1 + random.below(2)}`, workload: random.pick(SERVICES), status });
}

function aRandomService(name: string, random: Random) {
  const annotations = random.chance(0.3) ? { "forage.dev/opaque-ports": "80" } : {};
  const inlineRoute = random.chance(0.3) ? { rules: rules(random) } : undefined;
  const ports = [{ name: "http", port: 80, targetPort: 8080 }];
  const spec = {
    target: name,
    type: random.pick(["ClusterIP", "Headless"]),
    ports,
    annotations,
    inlineRoute,
  };
  return aServiceEntry({ name, spec, deleting: random.chance(0.2) });
}

function rules(random: Random) {
  const backends = [{ service: random.pick(SERVICES), port: 80, weight: 1 + random.below(3) }];
  return [{ timeout: { seconds: BigInt(random.below(3)) }, backends: random.chance(0.5) ? backends : [] }];
}

function zone(random: Random): Record<string, string> {
  return random.chance(0.5) ? { "topology.kubernetes.io/zone": "a" } : {};
}
