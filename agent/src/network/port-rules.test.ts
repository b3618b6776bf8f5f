import assert from "node:assert/strict";
import { test } from "node:test";
import { instanceNames } from "./instance-names.ts";
import type { PortMapping } from "./network.ts";
import { changedUdpPorts, deltaText, portElements, tableText } from "./port-rules.ts";

const shape = { names: instanceNames("x"), podCidr: "10.64.0.0/16" };

test("converts mappings to elements", () => {
  const mapping = { container: "web", containerPort: 80, protocol: "UDP", hostPort: 20_000 } as const;
  assert.deepEqual(portElements("10.64.0.2", [mapping]), [["udp . 20000", "10.64.0.2 . 80"]]);
});

test("ports of a single host address are in a separate map", () => {
  const mapping = { ...mappingOf(20_000), hostIp: "192.0.2.1" };
  const [[key, target] = ["", ""]] = portElements("10.64.0.2", [mapping]);
  assert.deepEqual([key, target], ["192.0.2.1 . tcp . 20000", "10.64.0.2 . 80"]);
  assert.deepEqual(portElements("fd64::2", [mapping]), []);
  const text = tableText(shape, new Map([[key, target]]));
  assert.match(text, /map host_address_ports \{\n.*\n {4}elements = \{ 192\.0\.2\.1 \. tcp \. 20000 : /);
  assert.match(text, /map host_ports \{\n.*inet_service\n {2}\}/);
  assert.equal(
    deltaText(shape, new Map([["tcp . 1", "a . 1"]]), new Map([[key, target]])),
    "delete element ip forage_x host_ports { tcp . 1 }\n" +
      `add element ip forage_x host_address_ports { ${key} : ${target} }\n`,
  );
  assert.deepEqual(changedUdpPorts(new Map(), new Map([["192.0.2.1 . udp . 53", "a . 1"]])), [53]);
});

test("a delta deletes before it adds, and leaves equal elements alone", () => {
  const from = new Map([
    ["tcp . 1", "a . 1"],
    ["tcp . 2", "a . 2"],
    ["tcp . 3", "a . 3"],
  ]);
  const to = new Map([
    ["tcp . 1", "a . 1"],
    ["tcp . 2", "b . 2"],
    ["udp . 4", "b . 4"],
  ]);
  assert.equal(
    deltaText(shape, from, to),
    "delete element ip forage_x host_ports { tcp . 2, tcp . 3 }\n" +
      "add element ip forage_x host_ports { tcp . 2 : b . 2, udp . 4 : b . 4 }\n",
  );
  assert.equal(deltaText(shape, to, to), "");
});

test("reports UDP ports that are added, removed or moved", () => {
  const from = new Map([
    ["udp . 1", "a . 1"],
    ["udp . 2", "a . 1"],
    ["tcp . 9", "a . 1"],
  ]);
  const to = new Map([
    ["udp . 2", "b . 1"],
    ["udp . 3", "b . 1"],
    ["tcp . 8", "a . 1"],
  ]);
  assert.deepEqual(changedUdpPorts(from, to).sort(), [1, 2, 3]);
  assert.deepEqual(changedUdpPorts(to, to), []);
});

test("replaces the table with its elements in one transaction", () => {
  const text = tableText(shape, new Map([["tcp . 1", "10.64.0.2 . 80"]]));
  assert.match(text, /^add table ip forage_x\ndelete table ip forage_x\ntable ip forage_x \{\n/);
  assert.match(text, /elements = \{ tcp \. 1 : 10\.64\.0\.2 \. 80 \}/);
  assert.doesNotMatch(tableText(shape, new Map()), /elements/);
});

test("the IPv6 table is separate and uses that family's keywords", () => {
  const six = { ...shape, podCidr: "fd64::/64" };
  const text = tableText(six, new Map(portElements("fd64::2", [mappingOf(20_000)])));
  assert.match(text, /^add table ip6 forage_x\ndelete table ip6 forage_x\ntable ip6 forage_x \{\n/);
  assert.match(text, /: ipv6_addr \. inet_service\n {4}elements = \{ tcp \. 20000 : fd64::2 \. 80 \}/);
  assert.match(text, /dnat ip6 to /);
  assert.doesNotMatch(text, /\bip (saddr|daddr|to)|127\.0/);
  assert.equal(
    deltaText(six, new Map([["tcp . 1", "a . 1"]]), new Map()),
    "delete element ip6 forage_x host_ports { tcp . 1 }\n",
  );
});

function mappingOf(hostPort: number): PortMapping {
  return { container: "web", containerPort: 80, protocol: "TCP", hostPort };
}
