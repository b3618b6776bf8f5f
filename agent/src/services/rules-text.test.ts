import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { ServiceState } from "@forage/proto/forage/agent/v1/agent";
import { rulesOf, type ServicePortRules } from "./port-rules.ts";
import { balancerDeltaText, deltaText, fullText } from "./rules-text.ts";

const OPTIONS = { table: "t", podCidr: "10.64.0.0/16", virtualIpRanges: ["10.96.0.0/16"], balancerIps: [] };
const N1 = { node: "n1", reach: [4, 6] } as const;
const HERE = { pod: "a", node: "n1", podIp: "10.64.0.2", hostIp: "192.0.2.1", hostPorts: [20_000, 20_001] };
const THERE = { pod: "b", node: "n2", podIp: "10.64.0.2", hostIp: "192.0.2.2", hostPorts: [20_005, 0] };
const ON_HOST = { ...HERE, pod: "c", hostNetwork: true, hostPorts: [8080, 0] };
const ELSEWHERE_ON_HOST = { ...THERE, pod: "d", hostNetwork: true, hostPorts: [8080, 0] };

describe("shows the targets of a service's clients on host n1", () => {
  for (const [what, fields, expected] of [
    [
      "its own pod",
      { endpoints: [HERE] },
      ["tcp 10.96.0.5:80 → 10.64.0.2:8080", "udp 10.96.0.5:53 → 10.64.0.2:5353"],
    ],
    [
      "a pod of another host, where it serves",
      { endpoints: [THERE] },
      ["tcp 10.96.0.5:80 → 192.0.2.2:20005"],
    ],
    ["a pod on the host's network", { endpoints: [ON_HOST] }, ["tcp 10.96.0.5:80 → 192.0.2.1:8080"]],
    ["such a pod of another host", { endpoints: [ELSEWHERE_ON_HOST] }, ["tcp 10.96.0.5:80 → 192.0.2.2:8080"]],
    [
      "several",
      { endpoints: [THERE, ELSEWHERE_ON_HOST] },
      ["tcp 10.96.0.5:80 → 192.0.2.2:20005 192.0.2.2:8080"],
    ],
    ["one that only its host can reach", { endpoints: [{ ...THERE, local: true }] }, []],
    [
      "its own, though others can't reach it",
      { endpoints: [{ ...ON_HOST, local: true }] },
      ["tcp 10.96.0.5:80 → 192.0.2.1:8080"],
    ],
    ["a host known by a name", { endpoints: [{ ...THERE, hostIp: "host-2" }] }, []],
    ["none", { endpoints: [] }, []],
    [
      "none by a number that is no port",
      {
        endpoints: [HERE, { ...THERE, hostPorts: [70_000, 70_000] }],
        ports: [
          { port: 65_536, protocol: "TCP", targetPort: 8080 },
          { port: 53, protocol: "UDP", targetPort: 65_536 },
        ],
      },
      [],
    ],
    [
      "no node port by a number that is none",
      { endpoints: [HERE], ports: [{ port: 80, protocol: "TCP", targetPort: 8080, nodePort: 70_000 }] },
      ["tcp 10.96.0.5:80 → 10.64.0.2:8080"],
    ],
    ["none: the service has no address yet", { endpoints: [HERE], virtualIps: [] }, []],
    [
      "the address of a load balancer, too",
      {
        endpoints: [THERE],
        type: "LoadBalancer",
        loadBalancerIps: ["198.51.100.1"],
        ports: [{ port: 80, protocol: "TCP", targetPort: 8080 }],
      },
      ["tcp 10.96.0.5:80 198.51.100.1:80 → 192.0.2.2:20005"],
    ],
    [
      "a node port, too",
      {
        endpoints: [THERE],
        ports: [{ port: 80, protocol: "TCP", targetPort: 8080, nodePort: 30_080 }],
      },
      ["tcp 10.96.0.5:80 :30080 → 192.0.2.2:20005"],
    ],
  ] as const) {
    test(what, () => assert.deepEqual(rulesOf(aService(fields), N1, 4).map(textOf), expected));
  }
});

const HERE6 = { ...HERE, podIpv6: "fd64::2", hostIpv6: "2001:db8::1" };
const THERE6 = { ...THERE, podIpv6: "fd64::2", hostIpv6: "2001:db8::2" };

describe("shows the targets of clients over IPv6", () => {
  for (const [what, fields, expected] of [
    [
      "its own pod, at its IPv6 address only",
      { endpoints: [HERE6] },
      ["tcp fd96::5:80 → fd64::2:8080", "udp fd96::5:53 → fd64::2:5353"],
    ],
    ["a pod of another host", { endpoints: [THERE6] }, ["tcp fd96::5:80 → 2001:db8::2:20005"]],
    ["none: no pod has IPv6", { endpoints: [HERE, THERE] }, []],
    ["those that have it, of several", { endpoints: [HERE, THERE6] }, ["tcp fd96::5:80 → 2001:db8::2:20005"]],
    [
      "its own pod on the host's network",
      { endpoints: [{ ...HERE6, hostNetwork: true }] },
      ["tcp fd96::5:80 → 2001:db8::1:20000", "udp fd96::5:53 → 2001:db8::1:20001"],
    ],
    ["none: the pod's host is reached by IPv4 only", { endpoints: [{ ...THERE6, hostIpv6: "" }] }, []],
    [
      "a node port, and the address of a load balancer",
      {
        endpoints: [THERE6],
        loadBalancerIps: ["198.51.100.1", "2001:db8:1::1"],
        ports: [{ port: 80, protocol: "TCP", targetPort: 8080, nodePort: 30_080 }],
      },
      ["tcp fd96::5:80 2001:db8:1::1:80 :30080 → 2001:db8::2:20005"],
    ],
  ] as const) {
    const service = aService({ virtualIps: ["10.96.0.5", "fd96::5"], ...fields });
    test(what, () => assert.deepEqual(rulesOf(service, N1, 6).map(textOf), expected));
  }

  test("a host without an address of the family reaches only its own pods", () => {
    const inReach = (reach: readonly (4 | 6)[], family: 4 | 6) => {
      const service = aService({ virtualIps: ["10.96.0.5", "fd96::5"], endpoints: [HERE6, THERE6] });
      return rulesOf(service, { node: "n1", reach }, family).map(textOf)[0];
    };
    assert.equal(inReach([4], 6), "tcp fd96::5:80 → fd64::2:8080");
    assert.equal(inReach([6], 4), "tcp 10.96.0.5:80 → 10.64.0.2:8080");
    assert.equal(inReach([4], 4), "tcp 10.96.0.5:80 → 10.64.0.2:8080 192.0.2.2:20005");
  });

  test("IPv6 adds no rules to the IPv4 table", () => {
    const virtualIps = ["10.96.0.5", "fd96::5"];
    const dual = rulesOf(aService({ virtualIps, endpoints: [HERE6, THERE6] }), N1, 4);
    assert.deepEqual(dual, rulesOf(aService({ endpoints: [HERE, THERE] }), N1, 4));
  });

  test("the IPv6 table is separate and uses that family's keywords", () => {
    const six = { ...OPTIONS, podCidr: "fd64::/64", virtualIpRanges: ["fd96::/112"] };
    const rules = (endpoints: readonly object[], affinitySeconds = 0) => {
      const service = aService({ virtualIps: ["fd96::5"], endpoints, affinitySeconds });
      return new Map(rulesOf(service, N1, 6).map((rule) => [rule.id, rule]));
    };
    const texts = [
      fullText(six, rules([HERE6, THERE6])),
      fullText(six, rules([HERE6, THERE6], 60)),
      deltaText(six, rules([HERE6]), rules([THERE6], 60)),
      deltaText(six, rules([HERE6]), new Map()),
      balancerDeltaText(six, ["2001:db8:1::1"], []),
    ];
    for (const text of texts) {
      assert.match(text, / ip6 t /);
      assert.doesNotMatch(text, /\bip (t\b|saddr|daddr|to)|ipv4_addr/);
    }
    assert.match(texts[2] ?? "", /dnat ip6 to \[2001:db8::2\]:20005/);
  });
});

test("a rule's id depends only on its service and port", () => {
  const [first] = rulesOf(aService({ endpoints: [HERE] }), N1, 4);
  const [second] = rulesOf(aService({ endpoints: [THERE], virtualIps: ["10.96.0.6"] }), N1, 4);
  const [other] = rulesOf(aService({ name: "other", endpoints: [HERE] }), N1, 4);
  assert.equal(first?.id, second?.id);
  assert.notEqual(first?.id, other?.id);
});

test("a change touches only changed rules, and removes addresses before it assigns them to others", () => {
  const before = byId(
    aService({ endpoints: [HERE] }),
    aService({ name: "api", virtualIps: ["10.96.0.6"], endpoints: [HERE] }),
  );
  const after = byId(aService({ name: "api", virtualIps: ["10.96.0.5"], endpoints: [THERE] }));
  const text = deltaText(OPTIONS, before, after);
  const lines = text.trim().split("\n");
  assert.ok(lines[0]?.startsWith("delete element ip t addresses"));
  assert.ok(text.indexOf("delete element") < text.indexOf("add element"));
  // A chain appears before the first jump to it, and disappears after the last one.
  assert.ok(text.lastIndexOf("add rule") < text.indexOf("add element"));
  assert.ok(text.indexOf("delete chain") > text.indexOf("add element"));
  assert.equal(deltaText(OPTIONS, after, after), "");
});

test("load balancer addresses are added and removed separately", () => {
  assert.equal(balancerDeltaText(OPTIONS, ["198.51.100.1"], ["198.51.100.1"]), "");
  assert.equal(
    balancerDeltaText(OPTIONS, ["198.51.100.1", "198.51.100.2"], ["198.51.100.2", "198.51.100.3"]),
    "delete element ip t balancer_ips { 198.51.100.1 }\nadd element ip t balancer_ips { 198.51.100.3 }\n",
  );
});

test("with affinity, a new endpoint leaves the others' sets unchanged", () => {
  const sticky = (endpoints: readonly object[]) =>
    byId(
      aService({ endpoints, affinitySeconds: 60, ports: [{ port: 80, protocol: "TCP", targetPort: 8080 }] }),
    );
  const text = deltaText(OPTIONS, sticky([HERE]), sticky([HERE, THERE]));
  assert.equal(text.match(/add set/g)?.length, 1);
  assert.doesNotMatch(text, /delete|flush set/);
  const back = deltaText(OPTIONS, sticky([HERE, THERE]), sticky([HERE]));
  assert.equal(back.match(/delete set/g)?.length, 1);
  assert.equal(back.match(/delete chain/g)?.length, 1);
  const longer = deltaText(
    OPTIONS,
    sticky([HERE]),
    byId(
      aService({
        endpoints: [HERE],
        affinitySeconds: 90,
        ports: [{ port: 80, protocol: "TCP", targetPort: 8080 }],
      }),
    ),
  );
  assert.match(longer, /add set .* timeout 90s/);
  assert.match(longer, /delete set .*_60/);
});

test("no text from a user appears in the rules", () => {
  const hostile = '"; flush ruleset; #';
  const service = aService({
    name: hostile,
    namespace: hostile,
    virtualIps: [hostile, "10.96.0.5"],
    endpoints: [
      { ...HERE, pod: hostile },
      { ...THERE, hostIp: hostile },
    ],
  });
  const text = fullText(OPTIONS, byId(service));
  assert.doesNotMatch(text, /flush ruleset/);
  assert.match(text, /10\.96\.0\.5 \. tcp \. 80/);
});

function aService(fields: object): ServiceState {
  return ServiceState.fromPartial({
    namespace: "shop",
    name: "web",
    virtualIps: ["10.96.0.5"],
    ports: [
      { name: "http", port: 80, protocol: "TCP", targetPort: 8080 },
      { name: "dns", port: 53, protocol: "UDP", targetPort: 5353 },
    ],
    ...fields,
  });
}

function byId(...services: readonly ServiceState[]): Map<string, ServicePortRules> {
  return new Map(services.flatMap((service) => rulesOf(service, N1, 4)).map((rule) => [rule.id, rule]));
}

function textOf({ protocol, addresses, nodePort, endpoints }: ServicePortRules): string {
  const at = addresses.map((key) => key.replace(/ \. \w+ \. /, ":"));
  const open = nodePort === undefined ? [] : [`:${nodePort.split(" . ")[1]}`];
  return `${[protocol, ...at, ...open].join(" ")} → ${endpoints.map(({ address, port }) => `${address}:${port}`).join(" ")}`;
}
