import assert from "node:assert/strict";
import { test } from "node:test";
import { assertNoOverlap, type Link, type Route, uplinkMtu } from "./host-links.ts";
import { parsePodCidr } from "./pod-cidr.ts";

const pods = parsePodCidr("10.64.0.0/16");

test("accepts routes outside the pod network", () => {
  const routes: Route[] = [
    { dst: "default", dev: "eth0" },
    { dst: "192.0.2.0/24", dev: "eth0", scope: "link" },
    { dst: "10.0.0.0/8", dev: "vpn0" },
    { dst: "10.64.0.0/16", dev: "fg-x", scope: "link" },
  ];
  assert.doesNotThrow(() => assertNoOverlap("fg-x", pods, routes));
});

test("rejects a route into the pod network and a link that encloses it", () => {
  const bad: Route[] = [
    { dst: "10.64.0.0/16", dev: "fg-y", scope: "link" },
    { dst: "10.64.3.0/24", dev: "vpn0" },
    { dst: "10.64.3.4", dev: "vpn0" },
    { dst: "10.0.0.0/8", dev: "eth0", scope: "link" },
  ];
  for (const route of bad)
    assert.throws(() => assertNoOverlap("fg-x", pods, [route]), /choose another/, route.dst);
});

test("uses a small MTU of the uplink, and leaves others to the kernel", () => {
  const links: Link[] = [
    { ifname: "eth0", mtu: 1_450, addr_info: [] },
    { ifname: "eth1", mtu: 9_000, addr_info: [] },
  ];
  assert.equal(uplinkMtu(links, [{ dst: "default", dev: "eth0" }]), 1_450);
  assert.equal(uplinkMtu(links, [{ dst: "default", dev: "eth1" }]), undefined);
  assert.equal(uplinkMtu(links, []), undefined);
});
