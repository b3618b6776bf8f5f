import assert from "node:assert/strict";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { test } from "node:test";
import { probePort } from "./probe-port.ts";

for (const host of ["127.0.0.1", "0.0.0.0", "::1"]) {
  test(`a TCP port with a listener at ${host} is in use until the listener closes`, async () => {
    const server = createServer().listen(0, host);
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    assert.equal(await probePort("TCP", port), false);
    server.close();
    await once(server, "close");
    assert.equal(await probePort("TCP", port), true);
    assert.equal(await probePort("TCP", port), true, "looking leaves nothing behind");
  });
}

for (const [type, address] of [
  ["udp4", "127.0.0.1"],
  ["udp6", "::"],
] as const) {
  test(`a UDP port bound by ${type} is in use until the socket closes`, async () => {
    const socket = createSocket(type).bind(0, address);
    await once(socket, "listening");
    const { port } = socket.address();
    assert.equal(await probePort("UDP", port), false);
    assert.equal(await probePort("TCP", port), true, "protocols don't share ports");
    socket.close();
    await once(socket, "close");
    assert.equal(await probePort("UDP", port), true);
  });
}

test("an SCTP port without an endpoint is free", async () => {
  assert.equal(await probePort("SCTP", 20_000), true);
});
