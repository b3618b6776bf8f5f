import assert from "node:assert/strict";
import { createServer, type Server } from "node:net";
import { type TestContext, test } from "node:test";
import { HOST_NETWORK } from "../runtime/runtime.ts";
import { PodDialer } from "./dial-pod.ts";

const HOST = "127.0.0.1";
/** A further loopback address stands for the address of a pod. */
const POD = "127.0.0.2";
const { signal } = new AbortController();

test("a port of a pod is the pod's, and not the host's of the same number", async (t) => {
  const port = await listen(t, HOST, "host", 0);
  await listen(t, POD, "pod", port);
  assert.equal(await answer({ namespacePath: "/run/netns/p1", port }), "pod");
});

test("a port of a pod on the host's network is the host's loopback port first", async (t) => {
  const port = await listen(t, HOST, "host", 0);
  await listen(t, POD, "pod", port);
  assert.equal(await answer({ namespacePath: HOST_NETWORK, port }), "host");
});

test("a pod without a network is refused", async () => {
  const dialer = new PodDialer(() => undefined, process.execPath);
  await assert.rejects(dialer.dial("p1", 80, signal), /no network/);
});

/** Returns what the program on the port says first. */
async function answer({ namespacePath, port }: { namespacePath: string; port: number }): Promise<string> {
  const dialer = new PodDialer(() => ({ address: POD, namespacePath }), process.execPath);
  const connection = await dialer.dial("p1", port, signal);
  let said = "";
  for await (const chunk of connection.setEncoding("utf8")) said += chunk;
  // Its own half stays open otherwise.
  connection.destroy();
  return said;
}

/** Starts a program that says its name and hangs up. Returns its port. */
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
