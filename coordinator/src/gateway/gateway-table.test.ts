import assert from "node:assert/strict";
import { test } from "node:test";
import { randomOf } from "@forage/common/random";
import { VirtualClock } from "@forage/common/virtual-clock";
import { ConnectResponse } from "@forage/proto/forage/agent/v1/agent";
import { FakeSource } from "../../test/certificates/fake-source.ts";
import { aNode, aServiceEntry } from "../../test/support/entries.ts";
import { aCertificate } from "../../test/support/gateway/a-certificate.ts";
import {
  aRouteRecord,
  aServiceRecord,
  entryOf,
  type RouteFields,
  some,
} from "../../test/support/gateway/a-route.ts";
import { ReceivedGateway } from "../../test/support/gateway/received-gateway.ts";
import { secretsOf } from "../../test/support/gateway/secrets.ts";
import { HandFedState } from "../../test/support/hand-fed-state.ts";
import type { EventInput } from "../model/event.ts";
import type { CertificateSource } from "./certificate-source.ts";
import { problemText } from "./conditions.ts";
import { GatewayTable } from "./gateway-table.ts";

const DAY_MS = 24 * 3_600_000;

test("sends a snapshot and then deltas to a gateway, and one message to a node that is not a gateway", () => {
  const { fed, session } = start({ routes: [{ name: "a", spec: { hostnames: ["a.org"] } }] });
  const [gateway, other] = [session("g1"), session("n1")];
  assert.deepEqual([gateway.received.gateway, [...gateway.received.hosts.keys()]], ["default", ["a.org"]]);
  assert.deepEqual([other.received.gateway, other.received.count], ["", 1]);
  fed.put({ resources: [routeEntry({ name: "b", spec: { hostnames: ["b.org"] } })] });
  assert.deepEqual([gateway.received.count, [...gateway.received.hosts.keys()]], [2, ["a.org", "b.org"]]);
  assert.deepEqual(
    gateway.last?.hosts.map(({ hostname }) => hostname),
    ["b.org"],
  );
  fed.remove("resources/shop/route/a");
  assert.deepEqual([gateway.last?.removedHosts, [...gateway.received.hosts.keys()]], [["a.org"], ["b.org"]]);
  assert.equal(other.received.count, 1);
});

test("wakes no node for a change without an effect on a gateway", () => {
  const { fed, session } = start({ routes: [{ name: "a" }] });
  const gateway = session("g1");
  fed.put({ resources: [aServiceEntry({ name: "other" })] });
  fed.put({ resources: [routeEntry({ name: "elsewhere", spec: { gatewayRef: "edge" } })] });
  fed.put({ nodes: [aNode({ name: "n7", labels: { "forage.dev/gateway": "edge" } })] });
  assert.equal(gateway.received.count, 1);
});

test("makes connected nodes gateways by their label, and ends this when the label changes", () => {
  const routes = [
    { name: "a", spec: { hostnames: ["a.org"] } },
    { name: "edge", spec: { hostnames: ["edge.org"], gatewayRef: "lab" } },
  ];
  const { fed, session, status } = start({ routes });
  const { received } = session("n1");
  const label = (value: string) =>
    fed.put({ nodes: [aNode({ name: "n1", labels: { "forage.dev/gateway": value } })] });
  const seen = () => [received.gateway, [...received.hosts.keys()]];
  assert.match(problemText(status("route", "edge").conditions), /GatewayNotFound: no node is gateway "lab"/);
  label("lab");
  assert.deepEqual(seen(), ["lab", ["edge.org"]]);
  assert.equal(problemText(status("route", "edge").conditions), "");
  label("true");
  assert.deepEqual(seen(), ["default", ["a.org"]]);
  label("false");
  assert.deepEqual(seen(), ["", []]);
  label("");
  assert.deepEqual(seen(), ["default", ["a.org"]]);
  fed.put({ nodes: [aNode({ name: "n1" })] });
  assert.deepEqual(seen(), ["", []]);
});

test("reaches the same state by any sequence of deltas as by a snapshot", async () => {
  const random = randomOf(11);
  const secrets = [await aCertificate("*.x.org"), await aCertificate("*.x.org")];
  const { fed, table, put, another } = start({ partBytes: 300 });
  const sessions = Array.from({ length: 3 }, () => new Session(table, "g1", true));
  const hostname = () => random.pick(["a.x.org", "b.x.org", "*.x.org", "y.org"]);
  for (let step = 0; step < 300; step++) {
    const name = `r${random.below(8)}`;
    const what = random.next();
    if (what < 0.2) fed.remove(`resources/shop/route/${name}`);
    else if (what < 0.3) fed.write(...put("x", random.pick(secrets)));
    else if (what < 0.4)
      fed.put({
        resources: [aServiceEntry({ name: "web", spec: { ports: [{ port: 80 + random.below(2) }] } })],
      });
    else {
      const tls = random.chance(0.5) ? { certificateRef: "x" } : undefined;
      const rules = [{ matches: [{ path: { value: random.pick(["/a", "/b", "/"]) } }] }];
      const spec = { hostnames: [hostname()], rules, priority: random.below(2), ...(tls && { tls }) };
      fed.put({ resources: [routeEntry({ name, createdMs: random.below(5), spec })] });
    }
    for (const one of sessions) if (random.chance(0.4)) one.read();
    if (step % 10 > 0) continue;
    // A new table without any history.
    const fresh = another();
    const whole = new ReceivedGateway();
    for (const message of fresh.open("g1", () => {}).reader.due()) whole.apply(updateOf(message));
    fresh.close();
    for (const one of sessions) {
      one.read();
      assert.deepEqual(one.received.all, whole.all, `step ${step}`);
    }
  }
});

test("sends a certificate from the route's secret only to gateways that serve it, and replaces it without the host", async () => {
  const [first, second] = [await aCertificate("a.org"), await aCertificate("a.org")];
  const tls = { certificateRef: "a" };
  const { fed, session, status, events, put } = start({
    clock: new VirtualClock({ startMs: Date.now() }),
    routes: [{ name: "a", spec: { hostnames: ["a.org"], tls } }],
  });
  const [gateway, edge, none] = [session("g1"), session("edge1"), session("n1")];
  assert.match(
    problemText(status("route", "a").conditions),
    /^CertificateNotFound: there is no secret "a" in namespace "shop"/,
  );
  fed.write(...put("a", first));
  const id = "secret/shop/a";
  assert.equal(gateway.received.certificates.get(id)?.keyPem, first["tls.key"].toString());
  assert.equal(gateway.received.hosts.get("a.org")?.certificate, id);
  assert.equal(problemText(status("route", "a").conditions), "");
  fed.write(...put("a", second));
  assert.equal(gateway.received.certificates.get(id)?.keyPem, second["tls.key"].toString());
  assert.deepEqual(gateway.last?.hosts, []);
  assert.deepEqual([edge.received.certificates.size, none.received.certificates.size], [0, 0]);
  fed.write(...put("a", { ...first, "tls.key": second["tls.key"] }));
  const problem = problemText(status("route", "a").conditions);
  assert.equal(
    problem,
    'InvalidCertificate: secret "a": tls.key is not the key of the first certificate in tls.crt',
  );
  assert.equal(gateway.received.certificates.size, 0);
  const text = JSON.stringify([events, status("route", "a")]);
  for (const { "tls.key": key } of [first, second])
    assert.ok(!text.includes(key.toString().split("\n")[1] ?? "?"), text);
});

test("reports a problem of a certificate when it appears", async () => {
  const clock = new VirtualClock({ startMs: Date.now() });
  const tls = { certificateRef: "a" };
  const { fed, session, status, put } = start({
    clock,
    routes: [{ name: "a", spec: { hostnames: ["a.org"], tls } }],
  });
  const gateway = session("g1");
  const problem = () => problemText(status("route", "a").conditions);
  fed.write(...put("a", await aCertificate("b.org", clock.nowMs())));
  assert.match(problem(), /^HostnameMismatch: the certificate in secret "a" is not for a\.org/);
  fed.write(...put("a", await aCertificate("a.org", clock.nowMs() + DAY_MS)));
  assert.match(problem(), /^CertificateNotYetValid/);
  clock.advance(2 * DAY_MS);
  assert.equal(problem(), "");
  clock.advance(90 * DAY_MS);
  assert.match(problem(), /^CertificateExpired/);
  assert.equal(gateway.received.certificates.size, 1);
});

test("marks a route as programmed once all its gateways have applied it", () => {
  const { fed, session, table, status } = start({ routes: [{ name: "a", spec: { hostnames: ["a.org"] } }] });
  const gateway = session("g1");
  const programmed = () => some(status("route", "a").conditions.find(({ type }) => type === "Programmed"));
  const say = (version: bigint, ready = true, refused = "") =>
    gateway.reader.receive({
      ready,
      message: ready ? "" : "can't bind port 80",
      proxyVersion: "1.40.0",
      version,
      problems: refused === "" ? [] : [{ hostname: refused, message: "Envoy refused it" }],
    });
  assert.match(programmed().message, /0 of 1 gateways .*; g1: its proxy has not reported yet/);
  // The version is from before a restart of the coordinator.
  say(gateway.received.version + 1n);
  assert.deepEqual([programmed().status, programmed().reason], [false, "Pending"]);
  say(gateway.received.version, false);
  assert.match(programmed().message, /g1: can't bind port 80/);
  say(gateway.received.version);
  assert.equal(programmed().status, true);
  const first = gateway.received.version;
  fed.put({ resources: [routeEntry({ name: "b", spec: { hostnames: ["b.org"] } })] });
  assert.equal(programmed().status, true, "it has not changed");
  assert.deepEqual([table.nodeState("g1")?.upToDate, table.nodeState("g1")?.proxyVersion], [false, "1.40.0"]);
  fed.put({ resources: [routeEntry({ name: "a", spec: { hostnames: ["a.org"], rules: [on("/new")] } })] });
  assert.match(programmed().message, /the newest routes are not applied yet/);
  say(first);
  assert.equal(programmed().status, false);
  say(gateway.received.version);
  assert.equal(programmed().status, true);
  say(gateway.received.version, true, "b.org");
  assert.equal(programmed().status, true, "it is another's");
  say(gateway.received.version, true, "a.org");
  assert.match(programmed().message, /0 of 1 gateways .*; g1: a\.org: Envoy refused it/);
  fed.put({ nodes: [aNode({ name: "g1", ready: false, labels: { "forage.dev/gateway": "" } })] });
  assert.match(programmed().message, /g1: gone/);
  assert.equal(table.nodeState("n1"), undefined);
});

test("records a route's problem as one event, and its end as another", () => {
  const { fed, events, clock } = start({ routes: [{ name: "a", spec: { targetService: "gone" } }] });
  assert.deepEqual(events, [], "what was so before is no news");
  const received = () =>
    events.splice(0).map(({ type, kind, name, reason }) => `${type} ${kind}/${name} ${reason}`);
  fed.put({ resources: [routeEntry({ name: "b", createdMs: 2_000 })] });
  assert.deepEqual(received(), ["Warning route/b Conflicted", "Warning route/b MatchShadowed"]);
  fed.put({ resources: [aServiceEntry({ name: "other" })] });
  assert.deepEqual(received(), []);
  fed.put({ resources: [aServiceEntry({ name: "gone" })] });
  assert.deepEqual(received(), ["Normal route/a ResolvedRefs"]);
  fed.remove("resources/shop/route/a");
  assert.deepEqual(received(), ["Normal route/b Accepted", "Normal route/b ConflictOver"]);
  clock.advance(DAY_MS);
  assert.deepEqual(received(), []);
});

test("passes requested hostnames to the issuer, and the challenges that every gateway answers", () => {
  const source = new FakeSource();
  const { fed, session, status, table } = start({
    source,
    routes: [{ name: "a", spec: { hostnames: ["a.org"], tls: {} } }],
  });
  const [one, edge] = [session("g1"), session("edge1")];
  assert.deepEqual(source.requested, ["a.org"]);
  assert.match(problemText(status("route", "a").conditions), /^Issuing: a\.org: wait/);
  say(edge);
  source.set([{ hostname: "a.org", token: "t1", keyAuthorization: "t1.k" }]);
  assert.deepEqual([one.received.challenges.length, edge.received.challenges.length], [1, 1]);
  say(one);
  assert.deepEqual(source.servedTokens, []);
  say(edge);
  assert.deepEqual(source.servedTokens, ["t1"]);
  source.set([...source.challenges(), { hostname: "b.org", token: "t2", keyAuthorization: "t2.k" }]);
  assert.deepEqual(source.servedTokens, []);
  say(one);
  assert.deepEqual(source.servedTokens, []);
  // An unreachable gateway is ignored.
  fed.put({ nodes: [aNode({ name: "edge1", ready: false, labels: { "forage.dev/gateway": "edge" } })] });
  assert.deepEqual(source.servedTokens, ["t1", "t2"]);
  source.set([], { type: "issued", chainPem: "chain", keyPem: "key", expiresMs: 5 });
  assert.equal(one.received.certificates.get("issued/a.org")?.keyPem, "key");
  assert.equal(status("route", "a").hostnames[0]?.expiresMs, 5);
  fed.remove("resources/shop/route/a");
  assert.deepEqual(source.requested, []);
  table.close();
  assert.equal(source.listeners.size, 0);
});

test("does not count a challenge as answered before it was sent, regardless of reports", () => {
  const source = new FakeSource();
  const later: (() => void)[] = [];
  const { session } = start({ source, defer: (run) => void later.push(run) });
  const [one, edge] = [session("g1"), session("edge1")];
  for (const gateway of [one, edge]) say(gateway);
  source.set([{ hostname: "a.org", token: "t1", keyAuthorization: "t1.k" }]);
  for (const ready of [true, false, true]) for (const gateway of [one, edge]) say(gateway, ready);
  assert.deepEqual(source.servedTokens, []);
  for (const run of later.splice(0)) run();
  assert.deepEqual(source.servedTokens, []);
  for (const gateway of [one, edge]) say(gateway);
  assert.deepEqual(source.servedTokens, ["t1"]);
});

test("ignores gateways that do not accept requests, and publishes no challenge if there are no others", () => {
  const source = new FakeSource();
  const { session } = start({ source });
  const [one, edge] = [session("g1"), session("edge1")];
  source.set([{ hostname: "a.org", token: "t1", keyAuthorization: "t1.k" }]);
  say(edge, false);
  say(one, false);
  assert.deepEqual(source.servedTokens, []);
  say(one, true);
  assert.deepEqual(source.servedTokens, ["t1"]);
});

test("serves a service's inline route like a route resource", () => {
  const { fed, session, status } = start({});
  const gateway = session("g1");
  const spec = { inlineRoute: { hostnames: ["web.org"], rules: [] }, ports: [{ port: 8080 }] };
  fed.put({ resources: [entryOf(aServiceRecord({ name: "shop", spec }))] });
  const [rule] = gateway.received.hosts.get("web.org")?.rules ?? [];
  assert.deepEqual([rule?.route, rule?.backends[0]?.port], ["shop/shop", 8080]);
  assert.equal(status("service", "shop").gateway, "default");
});

/**
 * Starts a table with the nodes g1 (gateway default), edge1 (gateway edge) and n1 (none), and the
 * service web.
 */
function start(given: {
  readonly routes?: readonly RouteFields[];
  readonly source?: CertificateSource;
  readonly clock?: VirtualClock;
  readonly partBytes?: number;
  readonly defer?: (run: () => void) => void;
}) {
  const { routes = [], source = new FakeSource(), clock = new VirtualClock(), partBytes } = given;
  const { defer = (run: () => void) => run() } = given;
  const { vault, put } = secretsOf();
  const label = "forage.dev/gateway";
  const nodes = [
    aNode({ name: "g1", labels: { [label]: "" } }),
    aNode({ name: "edge1", labels: { [label]: "edge" } }),
    aNode({ name: "n1" }),
  ];
  const fed = new HandFedState({
    nodes,
    resources: [aServiceEntry({ name: "web" }), ...routes.map(routeEntry)],
  });
  const events: EventInput[] = [];
  const another = () =>
    new GatewayTable({
      state: fed.state,
      vault,
      source,
      events: { record: (event) => events.push(event) },
      clock,
      defer,
      ...(partBytes !== undefined && { partBytes }),
    });
  const table = another();
  const session = (node: string) => new Session(table, node);
  const status = (kind: string, name: string) => some(table.statusOf(kind, "shop", name));
  return { fed, table, another, session, status, events, clock, put };
}

/** A session that reads whenever it is woken, or only on demand if it is lazy. */
class Session {
  readonly received = new ReceivedGateway();
  readonly reader: ReturnType<GatewayTable["open"]>["reader"];
  last: ReturnType<typeof updateOf> | undefined;

  constructor(table: GatewayTable, node: string, lazy = false) {
    this.reader = table.open(node, () => lazy || this.read()).reader;
    this.read();
  }

  read(): void {
    for (const message of this.reader.due()) {
      this.last = updateOf(message);
      this.received.apply(this.last);
    }
  }
}

/** Reports the received version as applied. */
function say({ reader, received }: Session, ready = true): void {
  reader.receive({ ready, message: "", proxyVersion: "", version: received.version, problems: [] });
}

function updateOf(bytes: Buffer) {
  const { message } = ConnectResponse.decode(bytes);
  assert.equal(message?.$case, "gateway");
  return message.value;
}

function routeEntry(fields: RouteFields) {
  return entryOf(aRouteRecord(fields));
}

function on(path: string) {
  return { matches: [{ path: { value: path } }] };
}
