import assert from "node:assert/strict";
import { once } from "node:events";
import { access, writeFile } from "node:fs/promises";
import { connect, createServer, type Socket } from "node:net";
import { basename } from "node:path";
import { type TestContext, test } from "node:test";
import type { HostNetwork } from "../src/network/host-network.ts";
import type { PodSandbox, PortMapping } from "../src/network/network.ts";
import { runCommand } from "../src/network/run-command.ts";
import { ask } from "./ask.ts";
import { askFrom, HostUnderTest } from "./host-under-test.ts";
import { HOST_ADDRESS, makeOutsideHost, OUTSIDE_ADDRESS } from "./outside-host.ts";
import { enterOwnNetwork, whyNoOwnNetwork } from "./own-network.ts";

const obstacle = whyNoOwnNetwork();
if (obstacle === undefined) enterOwnNetwork();
const skip = obstacle ?? false;

const signal = new AbortController().signal;
const BRIDGE_CALLS_IP_HOOKS = "/proc/sys/net/bridge/bridge-nf-call-iptables";
const PROTOCOLS = ["TCP", "UDP"] as const;
const [A_PORT, B_PORT] = [21_000, 21_001];
let hosts = 0;

interface Scene {
  readonly host: HostUnderTest;
  readonly network: HostNetwork;
  readonly outside: string;
  readonly a: PodSandbox;
  readonly b: PodSandbox;
}

/** Two pods that answer on port 80 by TCP and UDP, published, and another host. */
async function setUp(t: TestContext): Promise<Scene> {
  const outside = await makeOutsideHost(t);
  const host = await HostUnderTest.setUp(t, hosts++);
  const network = host.open();
  t.after(() => network.close());
  await network.start([], signal);
  const a = await network.attach("a", signal);
  const b = await network.attach("b", signal);
  await Promise.all([
    host.answer(nameOf(a), "a", 80),
    host.answer(nameOf(b), "b", 80),
    network.publish(a, mappings(A_PORT), signal),
    network.publish(b, mappings(B_PORT), signal),
  ]);
  return { host, network, outside, a, b };
}

for (const calls of ["0", "1"]) {
  test(`host ports answer from everywhere, with bridge-nf-call-iptables ${calls}`, { skip }, async (t) => {
    if (!(await setIfThere(BRIDGE_CALLS_IP_HOOKS, calls))) return t.skip("br_netfilter is not loaded");
    const { outside, a, b, network } = await setUp(t);
    for (const protocol of PROTOCOLS) {
      // Other hosts keep their address; who could not be answered directly goes by the bridge's.
      assert.equal(await askFrom(outside, protocol, HOST_ADDRESS, A_PORT), `a ${OUTSIDE_ADDRESS}`);
      assert.equal(await ask(protocol, HOST_ADDRESS, A_PORT), `a ${HOST_ADDRESS}`);
      assert.equal(await ask(protocol, "127.0.0.1", A_PORT), `a ${network.gateway}`);
      assert.equal(await ask(protocol, "127.0.0.5", B_PORT), `b ${network.gateway}`);
      assert.equal(await ask(protocol, network.gateway, B_PORT), `b ${network.gateway}`);
      assert.equal(
        await askFrom(nameOf(a), protocol, HOST_ADDRESS, B_PORT),
        `b ${network.gateway}`,
        "other pod",
      );
      assert.equal(
        await askFrom(nameOf(a), protocol, HOST_ADDRESS, A_PORT),
        `a ${network.gateway}`,
        "itself",
      );
      assert.equal(await askFrom(nameOf(a), protocol, b.address, 80), `b ${a.address}`, "directly");
      assert.equal(await askFrom(nameOf(a), protocol, "127.0.0.1", 80), "a 127.0.0.1", "own loopback");
    }
  });
}

test("pods reach other hosts by the host's address", { skip }, async (t) => {
  const { host, outside, a } = await setUp(t);
  await host.answer(outside, "outside", 7000);
  for (const protocol of PROTOCOLS) {
    assert.equal(await askFrom(nameOf(a), protocol, OUTSIDE_ADDRESS, 7000), `outside ${HOST_ADDRESS}`);
  }
});

test("what is not published does not answer", { skip }, async (t) => {
  const { network, outside } = await setUp(t);
  await network.unpublish("a", signal);
  assert.equal(await askFrom(outside, "TCP", HOST_ADDRESS, A_PORT), "refused");
  assert.equal(await ask("TCP", "127.0.0.1", A_PORT), "refused");
  assert.equal(await ask("TCP", "127.0.0.1", B_PORT), `b ${network.gateway}`);
});

test("a UDP client that never changes its port follows the host port from pod to pod", {
  skip,
}, async (t) => {
  const { network, b } = await setUp(t);
  const from = { udpPort: 40_000 };
  assert.match(await ask("UDP", HOST_ADDRESS, A_PORT, from), /^a /);
  await network.unpublish("a", signal);
  await ask("UDP", HOST_ADDRESS, A_PORT, from);
  await network.publish(b, mappings(A_PORT), signal);
  assert.match(await ask("UDP", HOST_ADDRESS, A_PORT, from), /^b /);
});

test("a pod can't reach what listens on the host's loopback", { skip }, async (t) => {
  const { host, network, a } = await setUp(t);
  const secret = createServer((socket) => socket.end("secret")).listen(7001, "127.0.0.1");
  t.after(() => secret.close());
  await once(secret, "listening");
  // What a pod with NET_ADMIN could do: send loopback addresses out to the host.
  const inPod = ["netns", "exec", nameOf(a), "sh", "-c"];
  await runCommand("ip", [
    ...inPod,
    `echo 1 > /proc/sys/net/ipv4/conf/all/route_localnet
     ip address del 127.0.0.1/8 dev lo
     ip route add 127.0.0.0/8 via ${network.gateway} src ${a.address}`,
  ]);
  assert.equal(await askFrom(nameOf(a), "TCP", "127.0.0.1", 7001), "silent");
  // The same with the guard gone, to know that it is the guard that keeps it.
  await runCommand("nft", ["flush", "chain", "ip", `forage_${host.instance}`, "guard"]);
  assert.equal(await askFrom(nameOf(a), "TCP", "127.0.0.1", 7001), "secret");
});

test("host ports answer without a gap while the agent is restarted", { skip }, async (t) => {
  const { host, network, outside } = await setUp(t);
  const long = connect(B_PORT, "127.0.0.1");
  await once(long, "connect");
  let asked = 0;
  let stop = false;
  const answers = new Set<string>();
  const asking = (async () => {
    for (; !stop; asked++) answers.add(await ask("TCP", HOST_ADDRESS, A_PORT));
  })();
  for (let restart = 0; restart < 3; restart++) {
    await network.close();
    const next = host.open();
    const known = ["a", "b"].map((podUid, index) => ({ podUid, ports: mappings(A_PORT + index) }));
    await next.start(known, signal);
    await next.close();
  }
  stop = true;
  await asking;
  assert.deepEqual([...answers], [`a ${HOST_ADDRESS}`], `${asked} asked`);
  assert.match(await read(long), /^b /);
  assert.match(await askFrom(outside, "TCP", HOST_ADDRESS, B_PORT), /^b /);
});

test("a detached pod leaves neither link nor connection, and its port can be had at once", {
  skip,
}, async (t) => {
  const { host, network, a, b } = await setUp(t);
  const from = { udpPort: 40_001 };
  assert.match(await ask("UDP", HOST_ADDRESS, A_PORT, from), /^a /);
  assert.match(await askFrom(nameOf(a), "UDP", HOST_ADDRESS, B_PORT), /^b /);
  await network.detach("a", signal);
  const links = JSON.parse(
    await runCommand("ip", ["-json", "link", "show", "master", `fg-${host.instance}`]),
  );
  assert.equal(links.length, 1, "b's");
  const tracked = await runCommand("conntrack", ["-L", "-p", "udp"]);
  assert.ok(!tracked.split("\n").some((line) => line.includes(`=${a.address} `)), tracked);
  await network.publish(b, mappings(A_PORT), signal);
  assert.match(await ask("UDP", HOST_ADDRESS, A_PORT, from), /^b /);
});

function mappings(hostPort: number): PortMapping[] {
  return PROTOCOLS.map((protocol) => ({ container: "web", containerPort: 80, protocol, hostPort }));
}

function nameOf(sandbox: PodSandbox): string {
  return basename(sandbox.namespacePath);
}

async function read(socket: Socket): Promise<string> {
  let text = "";
  for await (const bytes of socket) text += bytes;
  return text;
}

async function setIfThere(path: string, value: string): Promise<boolean> {
  try {
    await access(path);
    await writeFile(path, value);
    return true;
  } catch {
    return false;
  }
}
