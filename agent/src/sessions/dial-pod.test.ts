import assert from "node:assert/strict";
import { createServer, type Server } from "node:net";
import { type TestContext, test } from "node:test";
import { HOST_NETWORK } from "../runtime/runtime.ts";
import { PodDialer } from "./dial-pod.ts";

const HOST = "127.0.0.1";
/** Another loopback address takes the place of a pod's address. */
const POD = "127.0.0.2";
const { signal } = new AbortController();

test("a port of a pod is not the host's port of the same number", async (t) => {
  const port = await listen(t, HOST, "host", 0);
  await listen(t, POD, "pod", port);
  assert.equal(await answer({ namespacePath: "/run/netns/p1", port }), "pod");
});

test("a port of a pod on the host's network is first tried on the host's loopback address", async (t) => {
  const port = await listen(t, HOST, "host", 0);
  await listen(t, POD, "pod", port);
  assert.equal(await answer({ namespacePath: HOST_NETWORK, port }), "host");
});

test("rejects a pod without a network", async () => {
  const dialer = new PodDialer(() => undefined, process.execPath);
  await assert.rejects(dialer.dial("p1", 80, signal), /no network/);
});

/** Returns the greeting of the program on the port. */
async function answer({ namespacePath, port }: { namespacePath: string; port: number }): Promise<string> {
  const dialer = new PodDialer(() => ({ address: POD, namespacePath }), process.execPath);
  const connection = await dialer.dial("p1", port, signal);
  let said = "";
  for await (const chunk of connection.setEncoding("utf8")) said += chunk;
  // Otherwise the client's half stays open.
  connection.destroy();
  return said;
}

/** Starts a program that sends its name and closes the connection. Returns its port. */
async function listen(t: TestContext, host: string, name: string, port: number): Promise<number> {
  const server: Server = createServer((socket) => socket.end(name));
  t.after(() => server.close());
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen({ host, port }, resolve);
  });
  const address = server.address();
  assert.ok(typeof address === "object" && address !== null);
  return address.port;
}
