import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { IpFamily } from "@forage/common/ip";
import { ServiceState } from "@forage/proto/forage/agent/v1/agent";
import { lookUp } from "./lookup.ts";

const PORTS = [
  { name: "http", port: 80, protocol: "TCP", targetPort: 8080 },
  { name: "dns", port: 53, protocol: "UDP", targetPort: 5353 },
];
const HERE = {
  pod: "web-1",
  node: "n1",
  podIp: "10.64.0.2",
  hostIp: "192.0.2.1",
  hostPorts: [20_000, 20_001],
};
const THERE = { pod: "web-2", node: "n2", podIp: "10.64.0.2", hostIp: "192.0.2.2", hostPorts: [20_005, 0] };
const NATTED = {
  pod: "web-3",
  node: "n3",
  podIp: "10.64.0.9",
  hostIp: "192.0.2.3",
  hostPorts: [1, 2],
  local: true,
};
const fourOnly = [
  {
    namespace: "shop",
    name: "web",
    type: "ClusterIP",
    virtualIps: ["10.96.0.5"],
    ports: PORTS,
    endpoints: [HERE],
  },
  { namespace: "shop", name: "db", type: "Headless", ports: PORTS, endpoints: [HERE, THERE, NATTED] },
  { namespace: "shop", name: "none", type: "Headless", ports: PORTS, endpoints: [] },
  { namespace: "shop", name: "new", type: "ClusterIP", ports: PORTS, endpoints: [HERE] },
].map((fields) => ServiceState.fromPartial(fields));

describe("resolves names of the cluster", () => {
  for (const [name, type, expected] of [
    ["web.shop.svc.cluster.local", "A", "10.96.0.5"],
    ["web.shop.svc.cluster.local", "AAAA", "no-data"],
    ["web.shop.svc.cluster.local", "MX", "no-data"],
    ["new.shop.svc.cluster.local", "A", "no-data"],
    ["db.shop.svc.cluster.local", "A", "10.64.0.2 192.0.2.2"],
    ["none.shop.svc.cluster.local", "A", "no-data"],
    ["web-1.db.shop.svc.cluster.local", "A", "10.64.0.2"],
    ["web-2.db.shop.svc.cluster.local", "A", "192.0.2.2"],
    ["web-2.db.shop.svc.cluster.local", "AAAA", "no-data"],
    ["web-9.db.shop.svc.cluster.local", "A", "no-name"],
    ["web-1.web.shop.svc.cluster.local", "A", "no-name"],
    ["_http._tcp.web.shop.svc.cluster.local", "SRV", "web.shop.svc.cluster.local:80 + 10.96.0.5"],
    ["_http._udp.web.shop.svc.cluster.local", "SRV", "no-name"],
    ["_http._tcp.web.shop.svc.cluster.local", "A", "no-data"],
    ["_tcp.web.shop.svc.cluster.local", "SRV", "no-data"],
    [
      "_http._tcp.db.shop.svc.cluster.local",
      "SRV",
      "web-1.db.shop.svc.cluster.local:8080 web-2.db.shop.svc.cluster.local:20005 + 10.64.0.2 192.0.2.2",
    ],
    ["_dns._udp.db.shop.svc.cluster.local", "SRV", "web-1.db.shop.svc.cluster.local:5353 + 10.64.0.2"],
    ["_dns._udp.none.shop.svc.cluster.local", "SRV", "no-data"],
    [
      "web.shop.svc.cluster.local",
      "SRV",
      "web.shop.svc.cluster.local:80 web.shop.svc.cluster.local:53 + 10.96.0.5",
    ],
    ["gone.shop.svc.cluster.local", "A", "no-name"],
    ["shop.svc.cluster.local", "A", "no-data"],
    ["other.svc.cluster.local", "A", "no-name"],
    ["svc.cluster.local", "A", "no-data"],
    ["cluster.local", "SOA", "no-data"],
    ["x.cluster.local", "A", "no-name"],
    ["a.b.c.web.shop.svc.cluster.local", "A", "no-name"],
    ["10-64-0-7.shop.pod.cluster.local", "A", "10.64.0.7"],
    ["10-64-0-7.shop.pod.cluster.local", "AAAA", "no-data"],
    ["10-64-0.shop.pod.cluster.local", "A", "no-name"],
    ["shop.pod.cluster.local", "A", "no-data"],
    ["5.0.96.10.in-addr.arpa", "PTR", "web.shop.svc.cluster.local"],
    ["5.0.96.10.in-addr.arpa", "A", "no-data"],
    ["6.0.96.10.in-addr.arpa", "PTR", "elsewhere"],
    ["example.org", "A", "elsewhere"],
    ["acluster.local", "A", "elsewhere"],
    ["", "NS", "elsewhere"],
  ] as const) {
    test(`resolves ${name} ${type}`, () => assert.equal(answerText(name, type), expected));
  }
});

const HERE6 = { ...HERE, podIpv6: "fd64::2", hostIpv6: "2001:db8::1" };
const THERE6 = { ...THERE, podIpv6: "fd64::2", hostIpv6: "2001:db8::2" };
const dual = [
  { name: "web", virtualIps: ["10.96.0.5", "fd96::5"], endpoints: [HERE6] },
  { name: "old", virtualIps: ["10.96.0.6", "fd96::6"], endpoints: [THERE] },
  { name: "idle", virtualIps: ["10.96.0.7", "fd96::7"], endpoints: [] },
  { name: "away", virtualIps: ["10.96.0.8", "fd96::8"], endpoints: [{ ...THERE6, local: true }] },
  { name: "far", virtualIps: ["10.96.0.9", "fd96::9"], endpoints: [THERE6] },
  { name: "db", type: "Headless", endpoints: [HERE6, THERE6, NATTED] },
].map((fields) =>
  ServiceState.fromPartial({ namespace: "shop", type: "ClusterIP", ports: PORTS, ...fields }),
);

describe("resolves names of the cluster if pods have IPv6", () => {
  for (const [name, type, expected] of [
    ["web.shop.svc.cluster.local", "A", "10.96.0.5"],
    ["web.shop.svc.cluster.local", "AAAA", "fd96::5"],
    ["old.shop.svc.cluster.local", "A", "10.96.0.6"],
    // None of its pods is reachable by IPv6.
    ["old.shop.svc.cluster.local", "AAAA", "no-data"],
    ["idle.shop.svc.cluster.local", "AAAA", "fd96::7"],
    ["away.shop.svc.cluster.local", "AAAA", "fd96::8"],
    ["db.shop.svc.cluster.local", "A", "10.64.0.2 192.0.2.2"],
    ["db.shop.svc.cluster.local", "AAAA", "fd64::2 2001:db8::2"],
    ["web-1.db.shop.svc.cluster.local", "AAAA", "fd64::2"],
    ["web-2.db.shop.svc.cluster.local", "AAAA", "2001:db8::2"],
    ["web-3.db.shop.svc.cluster.local", "AAAA", "no-data"],
    ["_http._tcp.web.shop.svc.cluster.local", "SRV", "web.shop.svc.cluster.local:80 + 10.96.0.5 fd96::5"],
    [
      "_dns._udp.db.shop.svc.cluster.local",
      "SRV",
      "web-1.db.shop.svc.cluster.local:5353 + 10.64.0.2 fd64::2",
    ],
    ["fd64--7.shop.pod.cluster.local", "AAAA", "fd64::7"],
    ["fd64--7.shop.pod.cluster.local", "A", "no-data"],
    ["fd64-7.shop.pod.cluster.local", "AAAA", "no-name"],
    [reversed("5", "fd96"), "PTR", "web.shop.svc.cluster.local"],
    [reversed("5", "fd96"), "AAAA", "no-data"],
    [reversed("a", "fd96"), "PTR", "elsewhere"],
    ["5.ip6.arpa", "PTR", "elsewhere"],
    ["x.ip6.arpa", "PTR", "elsewhere"],
  ] as const) {
    test(`with IPv6, resolves ${name} ${type}`, () =>
      assert.equal(answerText(name, type, dual, [4, 6]), expected));
  }

  test("omits addresses of a family in which hosts are unreachable", () => {
    const asked = (name: string, type: string, reach: readonly IpFamily[]) =>
      answerText(`${name}.shop.svc.cluster.local`, type, dual, [4, 6], reach);
    assert.equal(asked("db", "AAAA", [4]), "fd64::2");
    assert.equal(asked("db", "A", [6]), "10.64.0.2");
    assert.equal(asked("far", "AAAA", [4]), "no-data");
    assert.equal(asked("far", "A", [4]), "10.96.0.9");
    assert.equal(asked("far", "A", [6]), "no-data");
    assert.equal(asked("far", "AAAA", [6]), "fd96::9");
  });

  test("omits addresses of a family that this host's pods lack", () => {
    for (const name of ["web.shop", "idle.shop", "db.shop"])
      assert.equal(answerText(`${name}.svc.cluster.local`, "AAAA", dual), "no-data");
    assert.equal(
      answerText("_http._tcp.web.shop.svc.cluster.local", "SRV", dual),
      "web.shop.svc.cluster.local:80 + 10.96.0.5",
    );
  });
});

const AS_FOUR = { viewpoint: { node: "n1", reach: [4] }, families: [4] } as const;

test("uses the host's own setting for the cluster domain until the coordinator's arrives", () => {
  const view = { services: new Map(), clusterDomain: "", virtualIpRanges: [] };
  assert.equal(lookUp("a.b.svc.my.site", "A", { view, domain: "my.site", ...AS_FOUR }).type, "no-name");
  assert.equal(
    lookUp("a.b.svc.cluster.local", "A", { view, domain: "my.site", ...AS_FOUR }).type,
    "elsewhere",
  );
});

function answerText(
  name: string,
  type: string,
  services: readonly ServiceState[] = fourOnly,
  families: readonly IpFamily[] = [4],
  reach: readonly IpFamily[] = [4, 6],
): string {
  const byKey = new Map(services.map((service) => [`${service.namespace}/${service.name}`, service]));
  const view = { services: byKey, clusterDomain: "cluster.local", virtualIpRanges: ["10.96.0.0/16"] };
  const found = lookUp(name, type, { view, domain: "other", viewpoint: { node: "n1", reach }, families });
  if (found.type !== "found") return found.type;
  const text = found.records.map((record) => {
    assert.equal(record.name, name);
    if ("address" in record) return record.address;
    return record.type === "SRV" ? `${record.target}:${record.port}` : record.target;
  });
  const more = found.additionals.map((record) => ("address" in record ? record.address : "?"));
  return [...text, ...(more.length === 0 ? [] : ["+", ...more])].join(" ");
}

/** Returns the reverse name of `first::last`, each of one digit. */
function reversed(last: string, first: string): string {
  const digits = `${first}${"0".repeat(27)}${last}`;
  return `${[...digits].reverse().join(".")}.ip6.arpa`;
}

test("Destination has a name on hosts that serve it, and none on others", () => {
  const view = { services: new Map<string, ServiceState>(), clusterDomain: "", virtualIpRanges: [] };
  const dependencies = {
    view,
    domain: "cluster.local",
    viewpoint: { node: "n1", reach: [4] as const },
    families: [4, 6] as const,
  };
  const name = "destination.forage.cluster.local";
  assert.equal(lookUp(name, "A", dependencies).type, "no-name");
  const serving = { ...dependencies, destination: ["10.64.0.1", "fd64::1"] };
  const addressesOf = (type: string): unknown => {
    const found = lookUp(name, type, serving);
    return found.type === "found"
      ? found.records.map((record) => "address" in record && record.address)
      : found.type;
  };
  assert.deepEqual(addressesOf("A"), ["10.64.0.1"]);
  assert.deepEqual(addressesOf("AAAA"), ["fd64::1"]);
  assert.equal(addressesOf("SRV"), "no-data");
});
