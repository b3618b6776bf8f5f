import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test } from "node:test";
import { randomOf } from "@forage/common/random";
import { GatewayUpdate, ServiceState } from "@forage/proto/forage/agent/v1/agent";
import { systemClock } from "../clock.ts";
import { JournalKey } from "../journal/journal-key.ts";
import { EnvoyPaths } from "./envoy/envoy-paths.ts";
import { KnownGateway } from "./known-gateway.ts";
import { clustersFile, endpointsFile, type RenderOptions, renderGateway } from "./render-gateway.ts";

type Host = NonNullable<Parameters<typeof GatewayUpdate.fromPartial>[0]["hosts"]>[number];
type Rule = NonNullable<Host["rules"]>[number];
type Tree = Record<string, unknown>;

const options: RenderOptions = {
  places: new EnvoyPaths("/run/g"),
  node: "n1",
  address: "::",
  ports: { http: 80, https: 443 },
  trustedHops: 0,
  accessLog: "/logs/access.log",
};
const WEB = { namespace: "shop", service: "web", port: 80, weight: 1 };
const API = { ...WEB, service: "api" };

function render(hosts: readonly Host[], more: Parameters<typeof GatewayUpdate.fromPartial>[0] = {}) {
  const update = GatewayUpdate.fromPartial({ hosts: [...hosts], ...more });
  const view = {
    certificates: new Map(update.certificates.map((it) => [it.id, it])),
    challenges: update.challenges,
  };
  return renderGateway(view, new Map(update.hosts.map((it) => [it.hostname, it])), options);
}

function resources(file: { readonly text: string }): Tree[] {
  return (JSON.parse(file.text) as { resources: Tree[] }).resources;
}

/** Returns the routes of one host on the plain HTTP port. */
function routesOf(rules: readonly Rule[]): Tree[] {
  const [configuration] = resources(render([{ hostname: "a.example", rules: [...rules] }]).routes.http);
  const virtualHosts = (configuration?.virtual_hosts ?? []) as { routes: Tree[] }[];
  return virtualHosts[0]?.routes ?? [];
}

describe("renders a rule as Envoy's route", () => {
  const retry = {
    retry_on: "connect-failure,refused-stream,reset-before-request",
    num_retries: 3,
    retry_host_predicate: [
      {
        name: "other-hosts",
        typed_config: {
          "@type": "type.googleapis.com/envoy.extensions.retry.host.previous_hosts.v3.PreviousHostsPredicate",
        },
      },
    ],
    host_selection_retry_max_attempts: 3,
  };
  const simple = { cluster: "shop/web/80", timeout: "0.000s", retry_policy: retry };
  const filter = ($case: string, value: object) => ({ filters: [{ filter: { $case, value } as never }] });
  for (const [what, rule, expected] of [
    ["everything", { backends: [WEB] }, { match: { prefix: "/" }, route: simple }],
    [
      "a match of all kinds",
      {
        backends: [WEB],
        match: {
          path: { type: "Exact", value: "/a" },
          headers: [{ type: "", name: "X-A", value: "1" }],
          queryParams: [{ type: "RegularExpression", name: "q", value: "[0-9]+" }],
          method: "PUT",
        },
      },
      {
        match: {
          path: "/a",
          headers: [
            { name: "X-A", string_match: { exact: "1" } },
            { name: ":method", string_match: { exact: "PUT" } },
          ],
          query_parameters: [{ name: "q", string_match: { safe_regex: { regex: "[0-9]+" } } }],
        },
        route: simple,
      },
    ],
    [
      "a prefix by segments, and a time-out",
      { backends: [WEB], match: { path: { value: "/a/" } }, timeoutMs: 1_500n },
      { match: { path_separated_prefix: "/a" }, route: { ...simple, timeout: "1.500s" } },
    ],
    [
      "shares",
      { backends: [WEB, { ...API, weight: 3 }, { ...WEB, weight: 2 }] },
      {
        match: { prefix: "/" },
        route: {
          weighted_clusters: {
            clusters: [
              { name: "shop/web/80", weight: 3 },
              { name: "shop/api/80", weight: 3 },
            ],
          },
          timeout: "0.000s",
          retry_policy: retry,
        },
      },
    ],
    ["nobody", {}, { match: { prefix: "/" }, direct_response: { status: 503 } }],
    [
      "a redirect, whatever backends there are",
      { backends: [WEB], ...filter("requestRedirect", { scheme: "https", statusCode: 301 }) },
      {
        match: { prefix: "/" },
        redirect: {
          scheme_redirect: "https",
          host_redirect: "a.example",
          response_code: "MOVED_PERMANENTLY",
        },
      },
    ],
    [
      "headers, for what they are",
      { backends: [WEB], ...filter("requestHeaderModifier", { set: { a: "%x%" }, remove: ["b"] }) },
      {
        match: { prefix: "/" },
        request_headers_to_add: [
          {
            header: { key: "a", value: "%%x%%" },
            append_action: "OVERWRITE_IF_EXISTS_OR_ADD",
            keep_empty_value: true,
          },
        ],
        request_headers_to_remove: ["b"],
        route: simple,
      },
    ],
    [
      "a prefix that is taken away",
      {
        backends: [WEB],
        match: { path: { value: "/a.b" } },
        ...filter("urlRewrite", { path: { value: "/" } }),
      },
      {
        match: { path_separated_prefix: "/a.b" },
        route: {
          ...simple,
          regex_rewrite: { pattern: { regex: "^/a\\.b/*" }, substitution: "/" },
        },
      },
    ],
    [
      "a copy for a service of the route's namespace",
      { backends: [WEB], ...filter("requestMirror", { service: "log", port: 81 }) },
      {
        match: { prefix: "/" },
        route: {
          ...simple,
          request_mirror_policies: [{ cluster: "shop/log/81", disable_shadow_host_suffix_append: true }],
        },
      },
    ],
  ] as const) {
    test(what, () => {
      const [route] = routesOf([{ route: "shop/r", ...rule } as Rule]);
      assert.deepEqual(route, { name: "shop/r", stat_prefix: "shop/r", ...expected });
    });
  }
});

test("plain HTTP for a host with a certificate serves challenges and redirects the rest", () => {
  const files = render([{ hostname: "a.example", rules: [{ backends: [WEB] }], certificate: "c" }], {
    certificates: [{ id: "c", chainPem: "CHAIN", keyPem: "KEY" }],
    challenges: [{ hostname: "a.example", token: "t", keyAuthorization: "t.proof" }],
  });
  const [plain] = resources(files.routes.http);
  assert.deepEqual(plain?.virtual_hosts, [
    {
      name: "a.example",
      domains: ["a.example"],
      routes: [
        {
          name: "acme",
          match: { path: "/.well-known/acme-challenge/t" },
          direct_response: { status: 200, body: { inline_string: "t.proof" } },
        },
        {
          name: "https",
          match: { prefix: "/" },
          redirect: {
            scheme_redirect: "https",
            host_redirect: "a.example",
            response_code: "PERMANENT_REDIRECT",
          },
        },
      ],
    },
  ]);
  const secret = files.secrets.get("c");
  assert.deepEqual(secret && resources(secret)[0]?.tls_certificate, {
    certificate_chain: { inline_string: "CHAIN" },
    private_key: { inline_string: "KEY" },
  });
});

test("the HTTPS port has a filter chain for exactly the names that need one", () => {
  const certificates = [{ id: "c" }];
  const names = (hosts: readonly Host[]): unknown => {
    const listeners = resources(render(hosts, { certificates }).listeners);
    const chains = listeners[1]?.filter_chains as { filter_chain_match: Tree; filters: Tree[] }[] | undefined;
    return chains?.map((it) => [it.filter_chain_match.server_names, it.filters[0]?.name]);
  };
  assert.deepEqual(names([{ hostname: "a.example" }]), undefined);
  assert.deepEqual(
    names([
      { hostname: "plain.example" },
      { hostname: "b.example", certificate: "c" },
      { hostname: "*.a.example", certificate: "c" },
      { hostname: "*", certificate: "c" },
      { hostname: "missing.example", certificate: "not there" },
      { hostname: "p.example", passthrough: [WEB], certificate: "c" },
    ]),
    [
      [undefined, "http"],
      [["*.a.example"], "http"],
      [["b.example"], "http"],
      [["p.example"], "tcp"],
    ],
  );
});

test("renders a service's endpoints as this host reaches them", () => {
  const here = { node: "n1", podIp: "10.64.0.2", hostIp: "192.0.2.1", hostPorts: [0, 20_000] };
  const there = { node: "n2", podIp: "10.64.0.2", hostIp: "192.0.2.2", hostPorts: [0, 20_005] };
  const state = ServiceState.fromPartial({
    ports: [
      { port: 53, protocol: "UDP", targetPort: 53 },
      { port: 80, protocol: "TCP", targetPort: 8080 },
    ],
    endpoints: [
      here,
      there,
      { ...there, hostIp: "192.0.2.3", local: true },
      { ...there, hostIp: "a-name" },
      { ...there, hostPorts: [0, 0] },
      { ...there, hostIp: "", hostIpv6: "2001:db8::2" },
      { ...here, hostNetwork: true, hostPorts: [0, 8080], local: true },
      there,
    ],
  });
  const addresses = (port: number, services: ReadonlyMap<string, ServiceState>): string[] => {
    const [assignment] = resources(endpointsFile({ ...WEB, port }, services, options));
    const groups = (assignment?.endpoints ?? []) as { lb_endpoints: Tree[] }[];
    return (groups[0]?.lb_endpoints ?? []).map((it) => {
      const { endpoint } = it as { endpoint: { address: { socket_address: Tree } } };
      return `${endpoint.address.socket_address.address} ${endpoint.address.socket_address.port_value}`;
    });
  };
  const services = new Map([["shop/web", state]]);
  assert.deepEqual(addresses(80, services), [
    "10.64.0.2 8080",
    "192.0.2.1 8080",
    "192.0.2.2 20005",
    "2001:db8::2 20005",
  ]);
  assert.deepEqual(addresses(53, services), [], "gateways speak TCP alone");
  assert.deepEqual(addresses(81, services), []);
  assert.deepEqual(addresses(80, new Map()), []);
});

test("the name of a port declares HTTP/2", () => {
  const http2 = (name: string): boolean => {
    const state = ServiceState.fromPartial({ ports: [{ name, port: 80, protocol: "TCP" }] });
    const { text } = clustersFile(new Map([["w", WEB]]), new Map([["shop/web", state]]), options);
    return text.includes("http2_protocol_options");
  };
  for (const name of ["grpc", "grpc-api", "h2c", "http2", "http2-x"]) assert.equal(http2(name), true, name);
  for (const name of ["", "http", "grpcx", "https", "h2", "web-grpc"]) assert.equal(http2(name), false, name);
});

test("any sequence of changes gives the same files as one change to the final state", async (t) => {
  const random = randomOf(7).next;
  const dir = await mkdtemp(join(tmpdir(), "forage-gateway-"));
  const key = new JournalKey(randomBytes(32), "test");
  const known = await KnownGateway.open({
    dir,
    key,
    clock: systemClock,
    onError: (it) => assert.fail(String(it)),
  });
  t.after(async () => {
    await known.close();
    await rm(dir, { recursive: true });
  });
  for (let round = 0; round < 200; round++) {
    known.apply(GatewayUpdate.fromPartial({ full: true, certificates: [{ id: "c" }] }));
    const final = new Map<string, Host>();
    for (let step = 0; step < 12; step++) {
      const hostname = `h${Math.floor(random() * 4)}.example`;
      const host = {
        hostname,
        rules: [{ backends: random() < 0.5 ? [WEB] : [API, WEB], route: `shop/r${step % 3}` }],
        certificate: random() < 0.3 ? "c" : "",
        passthrough: random() < 0.2 ? [API] : [],
      };
      const gone = random() < 0.3;
      if (gone) final.delete(hostname);
      else final.set(hostname, host);
      const change = gone ? { removedHosts: [hostname] } : { hosts: [host] };
      known.apply(GatewayUpdate.fromPartial({ ...change, more: step < 11 && random() < 0.3 }));
    }
    const whole = render([...final.values()].reverse(), { certificates: [{ id: "c" }] });
    assert.deepEqual(renderGateway(known, known.hosts, options), whole);
    assert.equal(
      clustersFile(new Map([...whole.clusters].reverse()), new Map(), options).text,
      clustersFile(whole.clusters, new Map(), options).text,
    );
  }
});

test("user text never changes the structure of the configuration", () => {
  const hostile = '"}],"x":{"%REQ(:path)%\n\\';
  const [route] = routesOf([
    {
      route: hostile,
      backends: [{ ...WEB, service: hostile }],
      match: {
        path: { type: "Exact", value: hostile },
        headers: [{ type: "", name: hostile, value: hostile }],
        queryParams: [],
        method: hostile,
      },
    } as Rule,
  ]);
  assert.deepEqual(Object.keys(route ?? {}), ["name", "stat_prefix", "match", "route"]);
  assert.equal(route?.name, hostile);
  assert.deepEqual((route?.match as Tree | undefined)?.path, hostile);
});
