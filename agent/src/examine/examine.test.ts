import assert from "node:assert/strict";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { createServer } from "node:net";
import { test } from "node:test";
import { examinePeer, tryConnection } from "./examine-peer.ts";
import { measurePath, sendPacket } from "./probe-path.ts";

const run = async (_file: string, args: readonly string[]) =>
  JSON.stringify(args.includes("route") ? [{ dev: "eth0" }] : [{ mtu: 1_500 }]);

/** Returns a function that sends packets on a path which passes packets up to this size. */
function aPath(largestBytes: number) {
  const sent: number[] = [];
  const send = async (_address: string, _port: number, packetBytes: number): Promise<boolean> => {
    sent.push(packetBytes);
    return packetBytes <= largestBytes;
  };
  return { sent, measured: () => measurePath("10.0.0.2", 29_999, run, send) };
}

test("a path passes the link's packets, only smaller ones, or can't be measured", async () => {
  const full = aPath(1_500);
  assert.deepEqual(await full.measured(), { link: "eth0", linkMtu: 1_500, pathMtu: 1_500 });
  assert.deepEqual(full.sent, [1_500]);
  const tunnel = aPath(1_425);
  assert.equal((await tunnel.measured()).pathMtu, 1_420);
  // A host limits the rate of its answers, so few packets that it answers are sent.
  assert.equal(tunnel.sent.filter((size) => size <= 1_425).length, 2);
  const silent = aPath(0);
  assert.equal((await silent.measured()).pathMtu, undefined);
  assert.equal(silent.sent.length, 4);
});

test("a closed port answers a datagram, and an open one may not answer", async () => {
  const socket = createSocket("udp4").bind(0, "127.0.0.1");
  await once(socket, "listening");
  const { port } = socket.address();
  assert.equal(await sendPacket("127.0.0.1", port, 1_000, 50), false);
  socket.close();
  await once(socket, "close");
  assert.equal(await sendPacket("127.0.0.1", port, 1_000, 5_000), true);
});

test("an address that can't be connected to answers nothing", async () => {
  assert.equal(await sendPacket("255.255.255.255", 9, 100, 60_000), false);
});

test("a port is open or refuses connections", async () => {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  assert.equal(await tryConnection("127.0.0.1", port), "open");
  server.close();
  await once(server, "close");
  assert.equal(await tryConnection("127.0.0.1", port), "refused");
});

test("connects to a peer's served port, or to an unused one, and only by address", async () => {
  const tried: string[] = [];
  const probes = {
    connection: async (address: string, port: number) => {
      tried.push(`${address}:${port}`);
      return "open";
    },
    path: async () => {
      throw new Error("no route");
    },
  };
  const served = await examinePeer({ node: "b", address: "10.0.0.2", port: 20_005 }, 29_999, probes);
  assert.deepEqual([served.serves, served.connection, served.pathMtu], [true, "open", 0]);
  await examinePeer({ node: "b", address: "10.0.0.2", port: 0 }, 29_999, probes);
  const named = await examinePeer({ node: "b", address: "internal.example", port: 0 }, 29_999, probes);
  assert.equal(named.connection, "EINVAL");
  assert.deepEqual(tried, ["10.0.0.2:20005", "10.0.0.2:29999"]);
});
