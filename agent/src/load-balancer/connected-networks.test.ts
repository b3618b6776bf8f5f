import assert from "node:assert/strict";
import { test } from "node:test";
import { type AddressedLink, connectedNetworks, interfaceFor, linksOf } from "./connected-networks.ts";

const links = [
  link("lo", "127.0.0.1/8", "::1/128"),
  link("eth0", "192.0.2.7/24", "2001:db8::7/64", "fe80::7/64", "192.0.2.50/32", "2001:db8::50/128"),
  link("eth1", "192.0.2.130/28", "169.254.3.4/16"),
  link("fg-main", "10.64.0.1/16", "fd64::1/64"),
  link("tun0", "10.8.0.2/32"),
];

test("the connected networks are those in which neighbours resolve addresses", () => {
  assert.deepEqual(
    connectedNetworks(links).map((it) => `${it.interface} ${it.cidr}`),
    ["eth0 192.0.2.0/24", "eth0 2001:db8::/64", "eth1 192.0.2.128/28"],
  );
});

for (const [address, expected] of [
  ["192.0.2.99", "eth0"],
  ["192.0.2.140", "eth1"],
  ["2001:db8::99", "eth0"],
  ["10.64.0.9", undefined],
  ["198.51.100.1", undefined],
  ["fe80::9", undefined],
] as const) {
  test(`${address} is announced on ${expected ?? "no interface"}`, () =>
    assert.equal(interfaceFor(address, links), expected));
}

test("converts the interfaces that Node reports", () => {
  const found = linksOf({
    eth0: [
      {
        address: "192.0.2.7",
        netmask: "255.255.255.0",
        family: "IPv4",
        mac: "02:00:00:00:00:07",
        internal: false,
        cidr: "192.0.2.7/24",
      },
    ],
  });
  assert.deepEqual(found, [
    { ifname: "eth0", addr_info: [{ family: "inet", local: "192.0.2.7", prefixlen: 24 }] },
  ]);
});

function link(ifname: string, ...addresses: readonly string[]): AddressedLink {
  const addr_info = addresses.map((text) => {
    const [local = "", prefix] = text.split("/");
    return { family: local.includes(":") ? "inet6" : "inet", local, prefixlen: Number(prefix) };
  });
  return { ifname, addr_info };
}
