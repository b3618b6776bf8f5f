import assert from "node:assert/strict";
import type { NetworkInterfaceInfo } from "node:os";
import { test } from "node:test";
import { advertisedAt, hostAddresses, reachableAt, reachableNames } from "./reachable-at.ts";

const anAddress = (address: string, internal = false): NetworkInterfaceInfo => {
  const more = { netmask: "", mac: "", internal, cidr: null };
  return address.includes(":")
    ? { ...more, address, family: "IPv6", scopeid: 0 }
    : { ...more, address, family: "IPv4" };
};

test("excludes addresses of loopback, links and container bridges", () => {
  const found = hostAddresses({
    lo: [anAddress("127.0.0.1", true)],
    "fg-main": [anAddress("10.64.0.1")],
    docker0: [anAddress("172.17.0.1")],
    eth0: [anAddress("2001:db8::5"), anAddress("fe80::1"), anAddress("192.0.2.5")],
  });
  assert.deepEqual(found, ["192.0.2.5", "2001:db8::5"]);
});

test("prefers configured names, and includes addresses if the port listens on all of them", () => {
  const names = ["forage.example"];
  const hostAddresses = ["192.0.2.5", "2001:db8::5"];
  const all = reachableNames({ listenHost: "0.0.0.0", names, hostAddresses });
  assert.deepEqual(reachableAt(all, 7600), ["forage.example:7600", "192.0.2.5:7600", "[2001:db8::5]:7600"]);
  assert.deepEqual(reachableNames({ listenHost: "192.0.2.9", names: [], hostAddresses }), ["192.0.2.9"]);
  assert.deepEqual(
    reachableAt(reachableNames({ listenHost: "127.0.0.1", names: [], hostAddresses }), 7600),
    [],
  );
});

test("advertises loopback only for a coordinator that listens on loopback", () => {
  assert.deepEqual(advertisedAt(["127.0.0.1"], { host: "127.0.0.1", port: 7600 }), ["127.0.0.1:7600"]);
  assert.deepEqual(advertisedAt(["::1"], { host: "::1", port: 7600 }), ["[::1]:7600"]);
  assert.deepEqual(advertisedAt(["a.example", "127.0.0.1"], { host: "0.0.0.0", port: 1 }), ["a.example:1"]);
});
