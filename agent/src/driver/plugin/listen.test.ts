import assert from "node:assert/strict";
import { existsSync, mkdtempSync, rmSync, statSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { Server, ServerCredentials } from "@grpc/grpc-js";
import { listenTcp, listenUnix } from "./listen.ts";

const CREDENTIALS = ServerCredentials.createInsecure();

test("only the owner can connect to the socket, and removing it twice is harmless", async (t) => {
  const socketDir = mkdtempSync(join(tmpdir(), "forage-listen-"));
  t.after(() => rmSync(socketDir, { recursive: true }));
  const options = { socketDir, socketGroup: undefined };
  const { network, address, remove } = await listenUnix(aServer(t), CREDENTIALS, options);
  assert.equal(network, "unix");
  assert.equal(statSync(address).mode & 0o777, 0o600);
  remove();
  assert.ok(!existsSync(address));
  remove();
});

test("the first free port of the range is taken, and a range without one is refused", async (t) => {
  const holder = createServer().listen(0, "127.0.0.1");
  t.after(() => holder.close());
  await new Promise((resolve) => holder.once("listening", resolve));
  const { port } = holder.address() as AddressInfo;
  await assert.rejects(listenTcp(aServer(t), CREDENTIALS, { min: port, max: port }), {
    message: `no port from ${port} to ${port} is free`,
  });
  const { address } = await listenTcp(aServer(t), CREDENTIALS, { min: port, max: port + 100 });
  assert.ok(Number(address.split(":")[1]) > port);
});

function aServer(t: TestContext): Server {
  const server = new Server();
  t.after(() => server.forceShutdown());
  return server;
}
