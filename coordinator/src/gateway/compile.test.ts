import assert from "node:assert/strict";
import { test } from "node:test";
import { aRoute, type RouteFields, some } from "../../test/support/gateway/a-route.ts";
import { ruleFor } from "../../test/support/gateway/ask.ts";
import type { PortsOf } from "./backends.ts";
import { compileGateway } from "./compile.ts";
import { conditionsOf, problemText } from "./conditions.ts";
import { type Route, routeKey } from "./route.ts";
import { type CertificateState, certificateIdOf } from "./tls.ts";

const port = (number: number, name = "", protocol = "") => {
  return { name, port: number, targetPort: 0, protocol, nodePort: 0 };
};
const services: Readonly<Record<string, ReturnType<typeof port>[]>> = {
  "shop/web": [port(80, "http")],
  "shop/canary": [port(80), port(81)],
  "shop/dns": [port(53, "dns", "UDP")],
  "shop/both": [port(53, "udp", "UDP"), port(8080, "plain"), port(8443, "https")],
  "rival/web": [port(80)],
};

test("sends all requests of a route without rules to the first TCP port of its target", () => {
  const { hosts } = compile([aRoute({ spec: { targetService: "both" } })]);
  assert.deepEqual(hosts.get("*"), {
    hostname: "*",
    certificate: "",
    passthrough: [],
    rules: [
      {
        match: undefined,
        backends: [{ namespace: "shop", service: "both", port: 8080, weight: 1 }],
        filters: [],
        timeoutMs: 0n,
        route: "shop/front",
      },
    ],
  });
});

test("gives equal shares without weights, and no requests to backends without a weight next to others", () => {
  const backends = (...weights: number[]) =>
    weights.map((weight, index) => ({ service: index === 0 ? "web" : "canary", port: 80, weight }));
  const weightsOf = (...weights: number[]) => {
    const { hosts } = compile([aRoute({ spec: { rules: [{ backends: backends(...weights) }] } })]);
    return hosts.get("*")?.rules[0]?.backends.map(({ service, weight }) => `${service} ${weight}`);
  };
  assert.deepEqual(weightsOf(0, 0), ["web 1", "canary 1"]);
  assert.deepEqual(weightsOf(90, 10), ["web 90", "canary 10"]);
  assert.deepEqual(weightsOf(100, 0), ["web 100"]);
});

test("reports a missing backend by its path, and keeps all shares", () => {
  const rules = [
    {
      matches: [{ path: { value: "/a" } }],
      backends: [
        { service: "web", port: 80 },
        { service: "gone", port: 80 },
      ],
    },
    { matches: [{ path: { value: "/b" } }], backends: [{ service: "web", port: 81 }] },
    { matches: [{ path: { value: "/c" } }], backends: [{ service: "dns", port: 53 }] },
    { matches: [{ path: { value: "/d" } }], filters: [mirrorTo("canary", 82), mirrorTo("canary", 81)] },
    { matches: [{ path: { value: "/e" } }] },
  ];
  const compiled = compile([aRoute({ spec: { rules } })]);
  const ruleOf = (path: string) => some(ruleFor(compiled.hosts, { host: "a", path }));
  assert.deepEqual(
    ruleOf("/a").backends.map(({ service }) => service),
    ["web", "gone"],
  );
  assert.deepEqual(ruleOf("/d").filters, [mirrorTo("canary", 81)]);
  assert.equal(ruleOf("/e").backends[0]?.service, "web");
  const [accepted, refs] = conditions(compiled, aRoute());
  assert.equal(accepted?.status, true);
  assert.deepEqual(refs, {
    type: "ResolvedRefs",
    status: false,
    reason: "BackendNotFound",
    message: [
      'rules[0].backends[1]: there is no service "gone"',
      'rules[1].backends[0]: service "web" has no port 81',
      'rules[2].backends[0]: port 53 of service "dns" is not TCP, and gateways support only TCP',
      'rules[3].filters[0].request_mirror: service "canary" has no port 82',
    ].join("; "),
  });
});

test("fails only the rules of a route whose target is missing", () => {
  const route = aRoute({ spec: { targetService: "gone", rules: [{}, redirect("/old")] } });
  const { hosts, findings } = compile([route]);
  assert.deepEqual(ruleFor(hosts, { host: "a", path: "/" })?.backends, []);
  assert.equal(ruleFor(hosts, { host: "a", path: "/old" })?.filters.length, 1);
  assert.deepEqual(
    findings.get("route/shop/front")?.refs.map(({ message }) => message),
    ['rules[0]: there is no service "gone" in namespace "shop"'],
  );
});

test("evaluates the nearest hostname first, and then those that cover it", () => {
  const at = (name: string, hostnames: string[], path: string) =>
    aRoute({ name, spec: { hostnames, rules: [{ matches: [{ path: { value: path } }] }] } });
  const { hosts } = compile([
    at("all", [], "/"),
    at("wide", ["*.example.com"], "/wide"),
    at("near", ["*.eu.example.com"], "/near"),
    at("exact", ["app.eu.example.com"], "/exact"),
  ]);
  const answer = (host: string, path: string) => ruleFor(hosts, { host, path })?.route;
  assert.equal(answer("app.eu.example.com", "/exact"), "shop/exact");
  assert.equal(answer("app.eu.example.com", "/near"), "shop/near");
  assert.equal(answer("app.eu.example.com", "/wide/x"), "shop/wide");
  assert.equal(answer("app.eu.example.com", "/other"), "shop/all");
  assert.equal(answer("b.eu.example.com", "/exact"), "shop/all");
  assert.equal(answer("example.com", "/wide"), "shop/all");
});

test("prefers the higher priority among equal matches, then the older route, then the first by name", () => {
  const cases: readonly (readonly [RouteFields, RouteFields, string])[] = [
    [{ spec: { priority: 1 }, createdMs: 2_000 }, { createdMs: 1_000 }, "has the higher priority"],
    [{ createdMs: 1_000 }, { createdMs: 2_000 }, "is older"],
    [{ namespace: "rival" }, { namespace: "shop" }, "comes first by name"],
  ];
  for (const [winner, loser, why] of cases) {
    const [first, second] = [aRoute({ name: "first", ...winner }), aRoute({ name: "second", ...loser })];
    const compiled = compile([second, first]);
    assert.deepEqual(
      compiled.hosts.get("*")?.rules.map(({ route }) => route),
      [`${first.namespace}/first`],
    );
    assert.equal(problemText(conditions(compiled, first)), "");
    const title = `route ${first.namespace}/first`;
    assert.equal(
      problemText(conditions(compiled, second)),
      `Conflicted: none of its matches applies: other routes take precedence; MatchShadowed: rules[0] (everything) of * is served by ${title}, which ${why}`,
    );
  }
});

test("keeps a partly hidden route accepted, and hides equal rules of one route", () => {
  const older = aRoute({ name: "older", spec: { rules: [{ matches: [{ path: { value: "/a" } }] }] } });
  const rules = [
    { matches: [{ path: { value: "/a/" } }] },
    { matches: [{ path: { value: "/b" } }] },
    { matches: [{ path: { type: "PathPrefix", value: "/b" } }] },
  ];
  const younger = aRoute({ name: "younger", createdMs: 2_000, spec: { rules } });
  const compiled = compile([older, younger]);
  const found = conditions(compiled, younger);
  assert.equal(found.find(({ type }) => type === "Accepted")?.status, true);
  assert.equal(
    found.find(({ type }) => type === "Conflicted")?.message,
    "rules[0] (PathPrefix /a) of * is served by route shop/older, which is older; rules[2] (PathPrefix /b) of * is never reached: rules[1] matches the same",
  );
});

test("applies a certificate to its hostname only, and never serves a hostname with TLS in plain text", () => {
  const secure = aRoute({
    name: "secure",
    spec: { hostnames: ["a.org"], tls: { certificateRef: "web" }, rules: [on("/s")] },
  });
  const plain = aRoute({ name: "plain", spec: { hostnames: ["a.org"], rules: [on("/p")] } });
  const with_ = compile([secure, plain], { "secret/shop/web": "ready" });
  assert.equal(with_.hosts.get("a.org")?.certificate, "secret/shop/web");
  assert.deepEqual([...with_.certificates.keys()], ["secret/shop/web"]);
  assert.deepEqual(
    with_.hosts.get("a.org")?.rules.map(({ backends }) => backends.length),
    [1, 1],
  );
  const without = compile([secure, plain]);
  assert.equal(without.hosts.get("a.org")?.certificate, "");
  const ruleOf = (path: string) => ruleFor(without.hosts, { host: "a.org", path });
  assert.deepEqual(ruleOf("/s")?.backends, []);
  assert.equal(ruleOf("/p")?.backends.length, 1);
  const [ready] = conditions(without, secure).filter(({ type }) => type === "CertificateReady");
  assert.deepEqual(ready, {
    type: "CertificateReady",
    status: false,
    reason: "Missing",
    message: "secret/shop/web",
  });
});

test("applies the TLS settings of a covering hostname unless the hostname has its own", () => {
  const wide = aRoute({ name: "wide", spec: { hostnames: ["*.a.org"], tls: { certificateRef: "wide" } } });
  const own = (tls?: object) =>
    aRoute({ name: "own", spec: { hostnames: ["x.a.org"], rules: [on("/own")], ...(tls && { tls }) } });
  const ready = { "secret/shop/wide": "ready", "secret/shop/own": "ready" } as const;
  const certificateOf = (route: Route, states: Readonly<Record<string, "ready">>) =>
    compile([wide, route], states).hosts.get("x.a.org")?.certificate;
  assert.equal(certificateOf(own(), ready), "secret/shop/wide");
  assert.equal(certificateOf(own({ certificateRef: "own" }), ready), "secret/shop/own");
  assert.equal(
    certificateOf(own({ certificateRef: "own" }), { "secret/shop/wide": "ready" }),
    "secret/shop/wide",
  );
  const handsOn = aRoute({
    name: "wide",
    spec: { hostnames: ["*.a.org"], tls: { mode: "Passthrough" }, targetService: "both" },
  });
  assert.equal(compile([handsOn, own()]).hosts.get("x.a.org")?.passthrough.length, 1);
  const opened = compile([handsOn, own({ certificateRef: "own" })], ready).hosts.get("x.a.org");
  assert.deepEqual([opened?.passthrough, opened?.certificate], [[], "secret/shop/own"]);
});

test("passes TLS streams to the TLS port, and never to another route", () => {
  const to = (targetService: string) =>
    aRoute({ spec: { hostnames: ["a.org"], tls: { mode: "Passthrough" }, targetService } });
  const passthrough = (route: Route) => compile([route]).hosts.get("a.org")?.passthrough;
  assert.deepEqual(passthrough(to("both")), [{ namespace: "shop", service: "both", port: 8443, weight: 1 }]);
  assert.deepEqual(passthrough(to("web")), [{ namespace: "shop", service: "web", port: 80, weight: 1 }]);
  assert.deepEqual(passthrough(to("gone")), [{ namespace: "shop", service: "gone", port: 443, weight: 1 }]);
  assert.deepEqual(compile([to("both")]).hosts.get("a.org")?.rules, []);
});

test("prefers the first of two routes with different TLS settings for a hostname, and reports the reason for the other", () => {
  const asking = (name: string, createdMs: number, tls: object) =>
    aRoute({
      name,
      createdMs,
      spec: { hostnames: ["a.org"], tls, rules: [on(`/${name}`)].slice(0, "mode" in tls ? 0 : 1) },
    });
  const handOn = { mode: "Passthrough" };
  const states = { "secret/shop/one": "ready", "secret/shop/two": "ready" } as const;
  const trouble = (first: object, second: object) => {
    const routes = [asking("first", 1_000, first), asking("second", 2_000, second)] as const;
    const compiled = compile(routes, states);
    assert.equal(problemText(conditions(compiled, routes[0])), "");
    return problemText(conditions(compiled, routes[1]));
  };
  assert.equal(
    trouble({ certificateRef: "one" }, { certificateRef: "two" }),
    "TLSConflict: a.org has the certificate of route shop/first, which is older",
  );
  assert.equal(trouble({ certificateRef: "one" }, { certificateRef: "one" }), "");
  const lost = "Conflicted: none of its matches applies: other routes take precedence; ";
  assert.equal(
    trouble({ certificateRef: "one" }, handOn),
    `${lost}TLSConflict: encrypted connections to a.org are terminated for route shop/first, which is older`,
  );
  assert.match(
    trouble(handOn, handOn),
    /passed through without TLS termination by route shop\/first, which is older/,
  );
  assert.match(
    trouble(handOn, { certificateRef: "two" }),
    /passed through without TLS termination by route shop\/first/,
  );
});

test("requests certificates for hostnames without a secret as long as a route needs them", () => {
  const issued = aRoute({ spec: { hostnames: ["a.org", "b.org"], tls: {} } });
  const secret = aRoute({
    name: "secret",
    createdMs: 500,
    spec: { hostnames: ["b.org"], tls: { certificateRef: "b" }, rules: [on("/b")] },
  });
  const handsOn = aRoute({
    name: "hands-on",
    createdMs: 500,
    spec: { hostnames: ["a.org"], tls: { mode: "Passthrough" } },
  });
  const requested = (routes: readonly Route[], states = {}) => [...compile(routes, states).requested];
  assert.deepEqual(requested([issued]), ["a.org", "b.org"]);
  assert.deepEqual(requested([issued], { "issued/a.org": "ready" }), ["a.org", "b.org"]);
  assert.deepEqual(requested([issued, secret], { "secret/shop/b": "ready" }), ["a.org"]);
  assert.deepEqual(requested([issued, secret]), ["a.org", "b.org"]);
  assert.deepEqual(requested([issued, handsOn]), ["b.org"]);
});

function compile(routes: readonly Route[], states: Readonly<Record<string, "ready">> = {}) {
  const portsOf: PortsOf = (namespace, service) => services[`${namespace}/${service}`];
  const certificateOf = (route: Route, hostname: string): CertificateState => {
    const id = certificateIdOf(route, hostname);
    if (states[id] === undefined) return { type: "missing", reason: "Missing", message: id };
    return { type: "ready", id, chainPem: "chain", keyPem: "key", expiresMs: undefined, warning: undefined };
  };
  return compileGateway({ routes, portsOf, certificateOf });
}

/** Returns the conditions for a gateway that has applied everything. */
function conditions(compiled: ReturnType<typeof compile>, route: Route) {
  const node = { node: "n1", ready: true, applied: true, message: "" };
  return conditionsOf(some(compiled.findings.get(routeKey(route))), [node]);
}

function on(path: string) {
  return { matches: [{ path: { value: path } }] };
}

function redirect(path: string) {
  return {
    ...on(path),
    filters: [{ filter: { $case: "requestRedirect" as const, value: { path: "/new" } } }],
  };
}

function mirrorTo(service: string, toPort: number) {
  return { filter: { $case: "requestMirror" as const, value: { service, port: toPort } } };
}
