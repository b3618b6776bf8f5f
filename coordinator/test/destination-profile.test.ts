import assert from "node:assert/strict";
import { test } from "node:test";
import { DestinationProfile } from "@forage/proto/destination";
import { ServiceAddressRecord } from "@forage/proto/forage/store/v1/store";
import { ForageResource } from "@forage/proto/forest/v1/forage";
import { type ClientReadableStream, type StatusObject, status } from "@grpc/grpc-js";
import { readConfig } from "../src/config.ts";
import { decodeRecord } from "../src/model/codec.ts";
import { HollowAgent } from "./support/hollow-agent.ts";
import { Lookup } from "./support/lookup.ts";
import { aContainerService, aRequest, watchToEnd } from "./support/requests.ts";
import { collected } from "./support/until.ts";
import { virtualIpOf } from "./support/virtual-ip.ts";
import { startWorld, type World } from "./support/world.ts";

const LIMIT = { timeout: 180_000 };
const FQN = "web.shop.svc.cluster.local";

for (const listener of ["TLS", "plain text"] as const) {
  test(`resolves a service to its endpoints by a profile over ${listener}`, LIMIT, async (t) => {
    const world = await startWorld(t);
    const destination = listener === "TLS" ? world.destination() : world.plainDestination();
    await HollowAgent.start(world);
    const profiles = new Profiles(destination.getProfile({ scheme: "", path: FQN, contextToken: "{" }));
    assert.equal((await profiles.next()).fullyQualifiedName, "", "at once, though nothing is known");
    await apply(world, {});
    const profile = await profiles.next();
    assert.equal(profile.fullyQualifiedName, FQN);
    assert.equal(profile.retryBudget?.minRetriesPerSecond, 10);
    const [override] = profile.dstOverrides;
    assert.ok(override && override.weight > 0);

    const path = override.authority;
    const found = new Lookup(destination.get({ scheme: "", path, contextToken: "" }));
    await found.until(() => found.endpoints.size === 2);
    for (const [address, pod] of found.endpoints) {
      const direct = new Profiles(destination.getProfile({ scheme: "", path: address, contextToken: "" }));
      const { endpoint, fullyQualifiedName } = await direct.next();
      assert.equal(endpoint?.metricLabels.pod, pod);
      assert.equal(fullyQualifiedName, "");
      direct.close();
    }
    await apply(world, { "config.linkerd.io/opaque-ports": "80" });
    assert.equal((await profiles.next()).opaqueProtocol, true);
  });
}

for (const listener of ["TLS", "plain text"] as const) {
  test(`resolves a virtual IP to its service while it is assigned over ${listener}`, LIMIT, async (t) => {
    const world = await startWorld(t);
    const destination = listener === "TLS" ? world.destination() : world.plainDestination();
    await HollowAgent.start(world);
    await apply(world, {});
    const ip = await virtualIpOf(world, "web");
    const ask = (port: number): Profiles =>
      new Profiles(destination.getProfile({ scheme: "", path: `${ip}:${port}`, contextToken: "" }));
    const [asked, elsewhere] = [ask(80), ask(81)];
    const profile = await asked.next();
    assert.equal(profile.fullyQualifiedName, FQN);
    assert.deepEqual(
      profile.dstOverrides.map(({ authority }) => authority),
      [`${FQN}:80`],
    );
    assert.deepEqual(
      await elsewhere.next(),
      DestinationProfile.fromPartial({}),
      "the service has no such port",
    );
    // The service stays and releases its address, which remains reserved, so no other service
    // gets it immediately.
    await apply(world, {}, "Headless");
    for (const stream of [asked, elsewhere, ask(80)]) {
      let last = await stream.next();
      while (last.fullyQualifiedName !== "" || last.retryBudget === undefined) last = await stream.next();
      assert.deepEqual([last.endpoint, last.dstOverrides], [undefined, []]);
    }
    const { records } = await world.store.range("service-addresses/");
    const [kept] = records.map(({ key, value }) => decodeRecord(ServiceAddressRecord, key, value));
    assert.deepEqual([kept?.virtualIps, kept?.releasedAt === undefined], [[ip], false]);
  });
}

test("resolves an address of a load balancer to its service", LIMIT, async (t) => {
  const { services } = readConfig(["--data-dir", "/nonexistent"], {});
  const world = await startWorld(t, {}, { services: { ...services, loadBalancerIps: ["198.51.100.7/32"] } });
  await HollowAgent.start(world);
  await apply(world, {}, "LoadBalancer");
  const path = "198.51.100.7:80";
  const profiles = new Profiles(world.destination().getProfile({ scheme: "", path, contextToken: "" }));
  while ((await profiles.next()).fullyQualifiedName !== FQN);
});

test("resolves a virtual IP of IPv6 in any spelling to its service", LIMIT, async (t) => {
  const { services } = readConfig(["--data-dir", "/nonexistent"], {});
  const world = await startWorld(t, {}, { services: { ...services, virtualIps6: "fd96::7/128" } });
  await HollowAgent.start(world);
  await apply(world, {});
  assert.match(await virtualIpOf(world, "web"), /^10\.96\./, "that of IPv4 comes first");
  for (const path of ["[fd96::7]:80", "[FD96:0:0::0007]:80"]) {
    const profiles = new Profiles(world.destination().getProfile({ scheme: "", path, contextToken: "" }));
    while ((await profiles.next()).fullyQualifiedName !== FQN);
    profiles.close();
  }
});

test("applies annotations of a service to the clients that look it up", LIMIT, async (t) => {
  const world = await startWorld(t);
  const zone = { "topology.kubernetes.io/zone": "a" };
  await HollowAgent.start(world, { name: "n1", labels: zone });
  await apply(world, { "forage.dev/protocol": "http2", "forage.dev/tls-identity": "web.example" });
  const contextToken = JSON.stringify({ ns: "shop", nodeName: "n1", pod: "p" });
  const stream = world.destination().get({ scheme: "", path: `${FQN}:80`, contextToken });
  stream.on("error", () => {});
  for await (const { update } of stream) {
    if (update?.$case !== "add") continue;
    for (const { protocolHint, tlsIdentity, metricLabels } of update.value.addrs) {
      assert.equal(protocolHint?.protocol?.$case, "h2");
      assert.equal(tlsIdentity?.serverName?.name, "web.example");
      assert.equal(metricLabels.zone_locality, "local");
    }
    break;
  }
});

test("answers an unresolvable look-up with an error after which a proxy continues", LIMIT, async (t) => {
  const world = await startWorld(t);
  // Pods of both hosts have the same pod IP.
  await HollowAgent.start(world, { name: "n1", address: "127.0.0.2" });
  await HollowAgent.start(world, { name: "n2", address: "127.0.0.3" });
  await apply(world, {});
  for (const destination of [world.destination(), world.plainDestination()]) {
    const profile = (path: string) => destination.getProfile({ scheme: "", path, contextToken: "" });
    for (const path of ["", "web", `${FQN}:0`, "10.0.0.1:x", "web.shop.svc.example.com"])
      await assert.rejects(collected(profile(path)), { code: status.INVALID_ARGUMENT }, path);
    await assert.rejects(collected(profile("10.0.0.1:80")), { code: status.FAILED_PRECONDITION });
    for (const path of ["192.0.2.99:80", "gone.shop.svc.cluster.local"]) {
      const unknown = new Profiles(profile(path));
      const { fullyQualifiedName, endpoint, retryBudget } = await unknown.next();
      assert.deepEqual([fullyQualifiedName, endpoint, retryBudget?.minRetriesPerSecond], ["", undefined, 10]);
    }
  }
});

test("reveals nothing to a token of another namespace, by name or by address", LIMIT, async (t) => {
  const world = await startWorld(t);
  await HollowAgent.start(world);
  await apply(world, {});
  const stranger = world.destination(await world.token("destination-reader", ["other"]));
  for (const method of ["get", "getProfile"] as const) {
    const stream = stranger[method]({ scheme: "", path: FQN, contextToken: "" });
    await assert.rejects(collected<unknown>(stream), { code: status.PERMISSION_DENIED });
  }
  const path = "127.0.0.1:20000";
  const profiles = new Profiles(stranger.getProfile({ scheme: "", path, contextToken: "" }));
  assert.equal((await profiles.next()).endpoint, undefined);
  const friend = world.destination(await world.token("destination-reader", ["shop"]));
  const ofFriend = new Profiles(friend.getProfile({ scheme: "", path, contextToken: "" }));
  assert.equal((await ofFriend.next()).endpoint?.metricLabels.namespace, "shop");
});

test("ends profiles with OK when the coordinator stops", LIMIT, async (t) => {
  const world = await startWorld(t);
  const profiles = new Profiles(world.destination().getProfile({ scheme: "", path: FQN, contextToken: "" }));
  await profiles.next();
  const ended = profiles.rest();
  await world.restart();
  assert.equal((await ended).code, status.OK);
});

/** A proxy's side of one stream of profiles. */
class Profiles {
  readonly #stream: ClientReadableStream<DestinationProfile>;
  readonly #iterator: AsyncIterator<DestinationProfile>;
  readonly #status: Promise<StatusObject>;

  constructor(stream: ClientReadableStream<DestinationProfile>) {
    this.#stream = stream;
    stream.on("error", () => {});
    this.#status = new Promise((resolve) => stream.on("status", resolve));
    this.#iterator = stream[Symbol.asyncIterator]();
  }

  async next(): Promise<DestinationProfile> {
    const next = await this.#iterator.next();
    assert.ok(!next.done, "the stream ended");
    return next.value;
  }

  /** Reads to the end of the stream. */
  async rest(): Promise<StatusObject> {
    while (!(await this.#iterator.next()).done);
    return this.#status;
  }

  close(): void {
    this.#stream.cancel();
  }
}

/**
 * Applies two replicas of `web` behind a service with these annotations, and waits until they run.
 */
async function apply(world: World, annotations: Record<string, string>, type = "ClusterIP"): Promise<void> {
  const value = { target: "web", type, ports: [{ name: "http", port: 80, targetPort: 8080 }], annotations };
  const service = ForageResource.fromPartial({ name: "web", spec: { $case: "service", value } });
  const request = aRequest(`a-${world.store.revision}`, [service, aContainerService("web")]);
  const { rolloutId } = await world.forage().applyResources(request);
  const lines = await watchToEnd(world, rolloutId);
  assert.doesNotMatch(lines.at(-1) ?? "", /FAILED/);
}
