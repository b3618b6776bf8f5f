import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { DestinationProfile } from "@forage/proto/destination";
import { PodPhase } from "@forage/proto/forage/agent/v1/agent";
import { aNode, aPod, aRouteEntry, aServiceEntry, type PodFields } from "../../test/support/entries.ts";
import { HandFedState } from "../../test/support/hand-fed-state.ts";
import { Deferred, HeldSink } from "../../test/support/held-sink.ts";
import { toTcpAddress } from "../ip/address.ts";
import type { Caller } from "../rpc/caller.ts";
import type { NodeEntry, PodEntry, ResourceEntry } from "../state/entries.ts";
import { Directory, type VirtualIpLookup } from "./directory.ts";
import { getProfile } from "./get-profile.ts";
import { emptyProfile, unknownProfile } from "./profile/service-profile.ts";

const FQN = "web.shop.svc.cluster.local";
const BUDGET = { retryRatio: 0.2, minRetriesPerSecond: 10, ttl: { seconds: 10n, nanos: 0 } };
const webService = {
  ...emptyProfile,
  fullyQualifiedName: FQN,
  retryBudget: BUDGET,
  dstOverrides: [{ authority: `${FQN}:80`, weight: 10_000, backendRef: reference("web", 80) }],
  parentRef: reference("web", 80),
};
const base = {
  resources: [
    aServiceEntry(),
    aServiceEntry({
      name: "db",
      spec: { target: "db", type: "Headless", ports: [{ name: "sql", port: 5432 }] },
    }),
  ],
  nodes: [node("n1", "192.0.2.1"), node("n2", "2001:db8::2")],
  pods: [
    pod("web-1", "n1", { podIp: "10.4.0.7", hostPort: 20_001 }),
    pod("web-2", "n2", { podIp: "10.4.0.7", hostPort: 20_001, ready: false }),
    pod("db-1", "n1", { podIp: "10.4.0.8", hostPort: 20_002, containerPort: 5432, workload: "db" }),
    pod("old", "n1", { podIp: "10.4.0.9", hostPort: 20_003, phase: PodPhase.SUCCEEDED }),
  ],
};

describe("returns as the first answer the profile of", () => {
  for (const [path, expected] of [
    [`${FQN}:80`, webService],
    [FQN, webService],
    ["10.96.0.1:80", webService],
    [`${FQN}:81`, emptyProfile],
    ["10.96.0.1:81", emptyProfile],
    ["gone.shop.svc.cluster.local:80", unknownProfile],
    ["10.96.0.9:80", unknownProfile],
    ["198.51.100.1:443", unknownProfile],
    ["[2001:db8::99]:443", unknownProfile],
    ["192.0.2.1:20001", endpoint("192.0.2.1", 20_001, "web-1", "n1", "web")],
    ["[2001:db8:0::2]:20001", endpoint("2001:db8::2", 20_001, "web-2", "n2", "web")],
    ["192.0.2.1:20009", unknownProfile],
    ["192.0.2.1:20003", unknownProfile],
    ["10.4.0.9:80", unknownProfile],
    ["10.4.0.8:5432", { ...endpoint("10.4.0.8", 5432, "db-1", "n1", "db"), opaqueProtocol: true }],
    ["192.0.2.1:20002", { ...endpoint("192.0.2.1", 20_002, "db-1", "n1", "db"), opaqueProtocol: true }],
    [
      "db-1.db.shop.svc.cluster.local:5432",
      { ...endpoint("192.0.2.1", 20_002, "db-1", "n1", "db"), opaqueProtocol: true },
    ],
    ["db-9.db.shop.svc.cluster.local:5432", unknownProfile],
    ["web-1.db.shop.svc.cluster.local:5432", unknownProfile],
    ["web-1.web.shop.svc.cluster.local:80", unknownProfile],
  ] as const) {
    test(path, () => assert.deepEqual(new Client(new World(), path).profiles(), [expected]));
  }
});

test("marks a port in the list of opaque ports as opaque", () => {
  const [profile] = new Client(new World(), "db.shop.svc.cluster.local:5432").profiles();
  assert.equal(profile?.opaqueProtocol, true);
  assert.equal(profile.dstOverrides.length, 1, "proxies balance opaque connections only with an override");
});

test("marks only the pod's own opaque ports as opaque", () => {
  const world = new World();
  const podIp = "10.4.0.6";
  const annotations = { "config.linkerd.io/opaque-ports": "8080" };
  world.put({ pods: [pod("web-3", "n1", { podIp, hostPort: 20_006, annotations })] });
  const opaque = (path: string) => new Client(world, path).profiles()[0]?.opaqueProtocol;
  assert.deepEqual([`${podIp}:8080`, "192.0.2.1:20006", `${podIp}:5432`].map(opaque), [true, true, false]);
});

test("returns the pod on the client's host if pods on several hosts have the same IP", () => {
  const world = new World();
  const podOf = (token: string) =>
    new Client(world, "10.4.0.7:8080", token).profiles()[0]?.endpoint?.metricLabels.pod;
  assert.equal(podOf('{"nodeName":"n1"}'), "web-1");
  assert.equal(podOf('{"nodeName":"n2"}'), "web-2");
  const { sink } = new Client(world, "10.4.0.7:8080", '{"nodeName":"n9"}');
  assert.equal((sink.failure as { code?: string }).code, "FAILED_PRECONDITION");
  assert.equal(sink.messages.length, 0);
});

test("finds a pod with addresses of both families by its own and by its host's addresses", () => {
  const world = new World();
  const addresses = ["192.0.2.5", "2001:db8::5"];
  const hostPorts = [{ container: "main", containerPort: 8080, protocol: "TCP", hostPort: 20_007 }];
  const status = {
    ready: true,
    phase: PodPhase.RUNNING,
    podIp: "10.4.0.30",
    podIps: ["10.4.0.30", "fd64::30"],
    hostPorts,
  };
  world.put({
    nodes: [aNode({ name: "n5", address: "192.0.2.5", addresses })],
    pods: [aPod({ name: "web-5", node: "n5", workload: "web", status })],
  });
  const clientOf = (path: string) => new Client(world, path);
  const podOf = (path: string) => clientOf(path).profiles()[0]?.endpoint?.metricLabels.pod;
  for (const path of ["10.4.0.30:8080", "[fd64:0::30]:8080", "192.0.2.5:20007", "[2001:db8::5]:20007"])
    assert.equal(podOf(path), "web-5", path);
  const before = clientOf("[2001:db8::6]:20007");
  before.sink.accept();
  assert.equal(before.profiles()[0]?.endpoint, undefined);
  const moved = ["192.0.2.5", "2001:db8::6"];
  world.put({ nodes: [aNode({ name: "n5", address: "192.0.2.5", addresses: moved })] });
  assert.equal(before.profiles()[1]?.endpoint?.metricLabels.pod, "web-5", "sent as it changes");
});

test("refuses a virtual IP of two services", () => {
  const both = ["web", "db"].map((service) => ({ namespace: "shop", service }));
  const { sink } = new Client(new World(() => both), "10.96.0.1:80");
  assert.equal((sink.failure as { code?: string }).code, "FAILED_PRECONDITION");
});

test("refuses an invalid path", () => {
  for (const path of ["", "web", `${FQN}:0`, "10.96.0.1:x", "web.shop.svc.example.com:80"])
    assert.throws(() => new Client(new World(), path), { code: "INVALID" });
});

test("treats a UDP port as missing", () => {
  const ports = [{ name: "log", port: 514, protocol: "UDP" }];
  const world = new World();
  world.put({ resources: [aServiceEntry({ name: "log", spec: { ports } })] });
  const [profile] = new Client(world, "log.shop.svc.cluster.local:514").profiles();
  assert.deepEqual(profile, emptyProfile);
});

test("includes the service's routes and split traffic with their sources", () => {
  const world = new World();
  const client = new Client(world, `${FQN}:80`);
  const rules = [
    { matches: [{ path: { type: "Exact", value: "/healthz" } }], timeout: { seconds: 1n } },
    {
      backends: [
        { service: "v1", port: 80, weight: 90 },
        { service: "v2", port: 80, weight: 10 },
      ],
    },
  ];
  world.put({ resources: [aRouteEntry({ name: "canary", spec: { targetService: "web", rules } })] });
  client.sink.takeAll();
  const profile = client.profiles().at(-1);
  assert.deepEqual(
    profile?.dstOverrides.map(({ authority, weight }) => `${authority} ${weight}`),
    ["v1.shop.svc.cluster.local:80 90", "v2.shop.svc.cluster.local:80 10"],
  );
  assert.equal(profile?.routes.length, 2);
  assert.equal(profile?.routes[0]?.timeout?.seconds, 1n);
  const ref = profile?.profileRef?.kind;
  assert.ok(ref?.$case === "resource");
  assert.deepEqual([ref.value.kind, ref.value.name, ref.value.namespace], ["Route", "canary", "shop"]);
  world.remove("resources/shop/route/canary");
  client.sink.takeAll();
  assert.deepEqual(client.profiles().at(-1), webService);
});

test("includes rules of other routes with the service as a backend, which do not split its traffic", () => {
  const world = new World();
  const client = new Client(world, `${FQN}:80`);
  const backends = [
    { service: "web", port: 80, weight: 1 },
    { service: "v2", port: 80, weight: 1 },
  ];
  const path = (value: string) => [{ path: { type: "Exact", value } }];
  const rewrite = { filter: { $case: "urlRewrite", value: { path: { value: "/" } } } };
  const rules = [
    { matches: path("/a"), backends },
    { matches: path("/b"), backends, filters: [rewrite] },
    { matches: path("/c"), backends: [{ service: "v2", port: 80, weight: 1 }] },
    { backends },
  ];
  const received = () => {
    client.sink.takeAll();
    return client.profiles().at(-1);
  };
  const shop = { name: "shop", spec: { target: "shop", inlineRoute: { rules } } };
  const front = aRouteEntry({ name: "front", spec: { targetService: "", rules } });
  for (const [entry, key] of [
    [front, "resources/shop/route/front"],
    [aServiceEntry(shop), "resources/shop/service/shop"],
  ] as const) {
    world.put({ resources: [entry] });
    const profile = received();
    assert.deepEqual(
      profile?.routes.map(
        ({ condition }) => condition?.match?.$case === "path" && condition.match.value.regex,
      ),
      ["/a", ".*"],
    );
    assert.deepEqual(profile?.dstOverrides, webService.dstOverrides);
    assert.equal(profile?.profileRef, undefined);
    world.remove(key);
    assert.deepEqual(received(), webService);
  }
});

test("follows creation, changes and deletion of a service, and sends nothing else", () => {
  const world = new World();
  const client = new Client(world, "late.shop.svc.cluster.local:80");
  const steps: (readonly [ResourceEntry, string])[] = [
    [aServiceEntry({ name: "late" }), "late.shop.svc.cluster.local false"],
    [
      aServiceEntry({ name: "late", spec: { annotations: { "config.linkerd.io/opaque-ports": "80" } } }),
      "late.shop.svc.cluster.local true",
    ],
    [aServiceEntry({ name: "late", deleting: true }), " false"],
  ];
  for (const [entry, expected] of steps) {
    for (let twice = 0; twice < 2; twice++) world.put({ resources: [entry] });
    client.sink.takeAll();
    const last = client.profiles().at(-1);
    assert.equal(`${last?.fullyQualifiedName} ${last?.opaqueProtocol}`, expected);
  }
  assert.equal(client.profiles().length, 4);
});

test("uses the hints of the service in front of a pod", () => {
  const annotations = { "forage.dev/protocol": "http2", "forage.dev/authority-override": "other.example" };
  const world = new World();
  const client = new Client(world, "192.0.2.1:20001");
  world.put({ resources: [aServiceEntry({ spec: { annotations } })] });
  client.sink.takeAll();
  const [before, after] = client.profiles();
  assert.equal(before?.endpoint?.protocolHint, undefined);
  assert.equal(after?.endpoint?.protocolHint?.protocol?.$case, "h2");
  assert.equal(after?.endpoint?.authorityOverride, undefined);
});

test("treats an address as unknown after its pod is removed, until another pod gets it", () => {
  const world = new World();
  const client = new Client(world, "192.0.2.1:20001");
  world.remove("pods/shop/web-1", "statuses/shop/web-1");
  client.sink.takeAll();
  world.put({ pods: [pod("web-9", "n1", { podIp: "10.4.0.20", hostPort: 20_001 })] });
  client.sink.takeAll();
  assert.deepEqual(
    client.profiles().map((profile) => profile.endpoint?.metricLabels.pod ?? "none"),
    ["web-1", "none", "web-9"],
  );
});

test("treats a service in a namespace that the caller may not read as unknown", () => {
  const of = (namespaces: readonly string[]): Caller => {
    return { type: "user", name: "u", grants: [{ role: "destination-reader", namespaces }] };
  };
  const world = new World();
  for (const path of ["192.0.2.1:20001", "10.96.0.1:80"]) {
    assert.deepEqual(new Client(world, path, "", of(["other"])).profiles(), [unknownProfile]);
    assert.notDeepEqual(new Client(world, path, "", of(["shop"])).profiles(), [unknownProfile]);
  }
  assert.throws(() => new Client(world, FQN, "", of(["other"])), { code: "PERMISSION_DENIED" });
});

class World {
  readonly #fed = new HandFedState(base);
  readonly #deferred = new Deferred();
  readonly directory: Directory;

  constructor(virtualIps: VirtualIpLookup = virtualIpOfWeb) {
    const defer = this.#deferred.defer;
    this.directory = new Directory({
      state: this.#fed.state,
      domain: "cluster.local",
      virtualIps,
      defer,
      soon: defer,
    });
  }

  put(contents: Parameters<HandFedState["put"]>[0]): void {
    this.#fed.put(contents);
    this.#deferred.runAll();
  }

  remove(...keys: string[]): void {
    this.#fed.remove(...keys);
    this.#deferred.runAll();
  }
}

class Client {
  readonly sink = new HeldSink();

  constructor({ directory }: World, path: string, contextToken = "", caller?: Caller) {
    const context = {
      caller: caller ?? ({ type: "anonymous" } as const),
      method: "/io.linkerd.proxy.destination.Destination/GetProfile",
      peer: "",
    };
    const authorize = caller !== undefined;
    getProfile({ scheme: "k8s", path, contextToken }, context, this.sink, { directory, authorize });
  }

  profiles(): DestinationProfile[] {
    return this.sink.messages.map((message) => {
      const profile = DestinationProfile.decode(message);
      const ratio = profile.retryBudget?.retryRatio ?? 0;
      // The ratio is a 32-bit float on the wire.
      if (profile.retryBudget !== undefined) profile.retryBudget.retryRatio = Math.round(ratio * 1000) / 1000;
      return profile;
    });
  }
}

function virtualIpOfWeb(ip: string) {
  return ip === "10.96.0.1" ? [{ namespace: "shop", service: "web" }] : [];
}

function node(name: string, address: string): NodeEntry {
  return aNode({ name, address, labels: { "topology.kubernetes.io/zone": `zone-of-${name}` } });
}

function pod(
  name: string,
  on: string,
  {
    podIp,
    hostPort,
    containerPort = 8080,
    workload = "web",
    phase = PodPhase.RUNNING,
    ready = true,
    annotations = {},
  }: {
    podIp: string;
    hostPort: number;
    containerPort?: number;
    workload?: string;
    phase?: NonNullable<PodFields["status"]>["phase"];
    ready?: boolean;
    annotations?: PodFields["annotations"];
  },
): PodEntry {
  const hostPorts = [{ container: "main", containerPort, protocol: "TCP", hostPort }];
  const status = { ready, podIp, hostPorts, ...(phase && { phase }) };
  return aPod({ name, node: on, workload, annotations, status });
}

function endpoint(ip: string, port: number, name: string, on: string, workload: string): DestinationProfile {
  const metricLabels = { namespace: "shop", pod: name, node: on, workload, zone: `zone-of-${on}` };
  return {
    ...emptyProfile,
    retryBudget: BUDGET,
    endpoint: {
      addr: toTcpAddress(ip, port),
      weight: 10_000,
      metricLabels,
      tlsIdentity: undefined,
      protocolHint: undefined,
      authorityOverride: undefined,
      http2: undefined,
      resourceRef: undefined,
    },
  };
}

function reference(name: string, port: number) {
  const value = { group: "core", kind: "Service", name, namespace: "shop", section: "", port };
  return { kind: { $case: "resource" as const, value } };
}
