import assert from "node:assert/strict";
import { test } from "node:test";
import type { PodNetworkSpec } from "../pods/pod.ts";
import {
  formatResolvConf,
  isReachableFromPods,
  parseResolvConf,
  podResolvConf,
  type ResolvConf,
} from "./resolv-conf.ts";

const HOST: ResolvConf = {
  nameservers: ["127.0.0.53", "192.0.2.1", "192.0.2.2"],
  searches: ["lan.example"],
  options: ["edns0", "ndots:2"],
};
const CLUSTER = { domain: "cluster.local", servers: [] };
const SERVICES = ["shop.svc.cluster.local", "svc.cluster.local", "cluster.local"];

const CASES: readonly {
  readonly what: string;
  readonly given: Partial<PodNetworkSpec>;
  readonly servers?: readonly string[];
  readonly gives: ResolvConf;
}[] = [
  {
    what: "ClusterFirst: the host's servers, the services' domains before the host's",
    given: {},
    gives: {
      nameservers: ["192.0.2.1", "192.0.2.2"],
      searches: [...SERVICES, "lan.example"],
      options: ["ndots:5"],
    },
  },
  {
    what: "ClusterFirst with a server of the cluster asks that one only",
    given: {},
    servers: ["10.64.0.1"],
    gives: { nameservers: ["10.64.0.1"], searches: [...SERVICES, "lan.example"], options: ["ndots:5"] },
  },
  {
    what: "ClusterFirst on the host's network: the host's",
    given: { hostNetwork: true },
    servers: ["10.64.0.1"],
    gives: HOST,
  },
  {
    what: "Default: the host's, but what listens on its loopback",
    given: { dnsPolicy: "Default" },
    servers: ["10.64.0.1"],
    gives: { ...HOST, nameservers: ["192.0.2.1", "192.0.2.2"] },
  },
  {
    what: "None: only the given settings",
    given: { dnsPolicy: "None", nameservers: ["9.9.9.9"], options: ["rotate"] },
    gives: { nameservers: ["9.9.9.9"], searches: [], options: ["rotate"] },
  },
  {
    what: "None on the host's network too",
    given: { dnsPolicy: "None", hostNetwork: true, nameservers: ["9.9.9.9"] },
    gives: { nameservers: ["9.9.9.9"], searches: [], options: [] },
  },
  {
    what: "dns_config is added: servers and domains once and in order, options replaced by name",
    given: {
      dnsPolicy: "Default",
      nameservers: ["192.0.2.2", "9.9.9.9", "9.9.9.10"],
      searches: ["lan.example", "more.example"],
      options: ["ndots:1", "rotate"],
    },
    gives: {
      nameservers: ["192.0.2.1", "192.0.2.2", "9.9.9.9"],
      searches: ["lan.example", "more.example"],
      options: ["edns0", "ndots:1", "rotate"],
    },
  },
];

for (const { what, given, servers = [], gives } of CASES) {
  test(what, () => {
    const network = {
      hostNetwork: false,
      dnsPolicy: "ClusterFirst",
      nameservers: [],
      searches: [],
      options: [],
      ...given,
    } as const;
    assert.deepEqual(podResolvConf({ namespace: "shop", network }, HOST, { ...CLUSTER, servers }), gives);
  });
}

test("limits search domains to what a resolver reads: 32, of 2048 characters together", () => {
  const network: PodNetworkSpec = {
    hostNetwork: false,
    dnsPolicy: "None",
    nameservers: ["9.9.9.9"],
    searches: Array.from({ length: 40 }, (_, index) => `d${index}.example`),
    options: [],
  };
  assert.equal(podResolvConf({ namespace: "shop", network }, HOST, CLUSTER).searches.length, 32);
  const long = Array.from({ length: 20 }, (_, index) => `d${index}.${"a".repeat(200)}.example`);
  const fits = podResolvConf({ namespace: "shop", network: { ...network, searches: long } }, HOST, CLUSTER);
  assert.ok(fits.searches.join(" ").length <= 2048 && fits.searches.length >= 9);
});

test("parses a resolv.conf as resolvers do: comments, repeated lines, the last search", () => {
  const text = `# one\nnameserver 192.0.2.1 ; tail\n nameserver\t2001:db8::1\nnameserver\ndomain old.example
search a.example b.example\noptions ndots:2 rotate\noptions edns0\nsortlist 10.0.0.0\n`;
  assert.deepEqual(parseResolvConf(text), {
    nameservers: ["192.0.2.1", "2001:db8::1"],
    searches: ["a.example", "b.example"],
    options: ["ndots:2", "rotate", "edns0"],
  });
});

test("parsing a written file returns the same configuration", () => {
  assert.deepEqual(parseResolvConf(formatResolvConf(HOST)), HOST);
  const nothing = { nameservers: [], searches: [], options: [] };
  assert.match(formatResolvConf(nothing), /^# .*no name server.*\n$/);
  assert.deepEqual(parseResolvConf(formatResolvConf(nothing)), nothing);
});

for (const [address, reachable] of [
  ["192.0.2.1", true],
  ["127.0.0.53", false],
  ["0.0.0.0", false],
  ["2001:db8::1", true],
  ["::1", false],
  ["fe80::1%eth0", false],
  ["resolver.example", false],
] as const) {
  test(`${address} is ${reachable ? "" : "not "}reachable from pods`, () => {
    assert.equal(isReachableFromPods(address), reachable);
  });
}
