import assert from "node:assert/strict";
import { test } from "node:test";
import type { PortMapping } from "./network.ts";
import { PortAllocator } from "./port-allocator.ts";

const WEB: PortMapping = { container: "web", containerPort: 80, protocol: "TCP", hostPort: 21_000 };

test("a pod keeps its adopted ports, and another pod gets none of them", async () => {
  const allocator = new PortAllocator(
    { first: 21_000, last: 21_009 },
    async () => true,
    () => 0,
  );
  assert.deepEqual(allocator.hold("a", [WEB]), []);
  assert.deepEqual(allocator.hold("a", [WEB]), []);
  assert.deepEqual(allocator.hold("b", [WEB]), [WEB]);
  assert.deepEqual(await allocator.allocate("a", [WEB]), [WEB]);
  const [other] = await allocator.allocate("b", [WEB]);
  assert.equal(other?.hostPort, 21_001);
  allocator.release("a");
  assert.deepEqual(allocator.hold("c", [WEB]), []);
});
