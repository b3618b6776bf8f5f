import assert from "node:assert/strict";
import { test } from "node:test";
import { parsePublished, portsOf } from "./published-ports.ts";

const MAP = `table ip forage {
  map host_ports {
    type inet_proto . inet_service : ipv4_addr . inet_service
    elements = { tcp . 20000 : 10.64.0.2 . 8080,
                 tcp . 20001 : 10.64.0.3 . 8080, udp . 20000 : 10.64.0.3 . 53 }
  }
}`;
const WEB = { container: "web", containerPort: 8080, protocol: "TCP" } as const;
const DNS = { container: "dns", containerPort: 53, protocol: "UDP" } as const;

test("a pod's host ports are those that forward to its own address", () => {
  const published = parsePublished(MAP);
  assert.deepEqual(portsOf(published, "10.64.0.2", [WEB]), [{ ...WEB, hostPort: 20_000 }]);
  assert.deepEqual(portsOf(published, "10.64.0.3", [WEB, DNS]), [
    { ...WEB, hostPort: 20_001 },
    { ...DNS, hostPort: 20_000 },
  ]);
});

test("adopts no port of a pod if one of its ports is not published", () => {
  assert.equal(portsOf(parsePublished(MAP), "10.64.0.2", [WEB, DNS]), undefined);
});
