import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createServer } from "node:net";
import { test } from "node:test";
import { freePorts } from "./free-ports.ts";

test("returns different ports that are free and outside the kernel's range for connections", async () => {
  const ports = await freePorts(200);
  assert.equal(new Set(ports).size, 200);
  const [first = 0] = readFileSync("/proc/sys/net/ipv4/ip_local_port_range", "utf8").split(/\s/).map(Number);
  for (const port of ports) {
    assert.ok(port < first, `${port} of the kernel's own range`);
    const server = createServer();
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject).listen(port, "127.0.0.1", resolve);
    });
    await new Promise((resolve) => server.close(resolve));
  }
});

test("returns no port that fetch refuses", async () => {
  const draws = [10_080, 10_081];
  assert.deepEqual(await freePorts(1, "127.0.0.1", () => draws.shift() ?? 0), [10_081]);
});

test("reports an address that the host doesn't have", async () => {
  await assert.rejects(freePorts(1, "192.0.2.1"), { code: "EADDRNOTAVAIL" });
});
