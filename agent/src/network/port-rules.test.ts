import assert from "node:assert/strict";
import { test } from "node:test";
import { instanceNames } from "./instance-names.ts";
import { parsePodCidr } from "./ipv4-cidr.ts";
import { changedUdpPorts, deltaText, portElements, tableText } from "./port-rules.ts";

const names = instanceNames("x");

test("mappings become elements", () => {
  const mapping = { container: "web", containerPort: 80, protocol: "UDP", hostPort: 20_000 } as const;
  assert.deepEqual(portElements("10.64.0.2", [mapping]), [["udp . 20000", "10.64.0.2 . 80"]]);
});

test("a delta deletes before it adds, and leaves alone what stays", () => {
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
    deltaText(names, from, to),
    "delete element ip forage_x host_ports { tcp . 2, tcp . 3 }\n" +
      "add element ip forage_x host_ports { tcp . 2 : b . 2, udp . 4 : b . 4 }\n",
  );
  assert.equal(deltaText(names, to, to), "");
});

test("UDP ports that came, went or moved are told", () => {
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

test("the table is replaced in one transaction, elements and all", () => {
  const cidr = parsePodCidr("10.64.0.0/16");
  const text = tableText(names, cidr, new Map([["tcp . 1", "10.64.0.2 . 80"]]));
  assert.match(text, /^add table ip forage_x\ndelete table ip forage_x\ntable ip forage_x \{\n/);
  assert.match(text, /elements = \{ tcp \. 1 : 10\.64\.0\.2 \. 80 \}/);
  assert.doesNotMatch(tableText(names, cidr, new Map()), /elements/);
});
