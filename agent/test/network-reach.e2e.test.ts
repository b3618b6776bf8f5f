import assert from "node:assert/strict";
import { once } from "node:events";
import { access, writeFile } from "node:fs/promises";
import { connect, createServer, type Socket } from "node:net";
import { basename } from "node:path";
import { type TestContext, test } from "node:test";
import { enterOwnNetwork, whyNoOwnNetwork } from "../../hack/lib/own-network.ts";
import type { HostNetwork } from "../src/network/host-network.ts";
import type { PodSandbox, PortMapping } from "../src/network/network.ts";
import { runCommand } from "../src/network/run-command.ts";
import { ask } from "./ask.ts";
import { askFrom, HostUnderTest } from "./host-under-test.ts";
import { HOST_ADDRESS, makeOutsideHost, OUTSIDE_ADDRESS } from "./outside-host.ts";

const obstacle = whyNoOwnNetwork();
if (obstacle === undefined) enterOwnNetwork();
const skip = obstacle ?? false;

const signal = new AbortController().signal;
const BRIDGE_CALLS_IP_HOOKS = "/proc/sys/net/bridge/bridge-nf-call-iptables";
const PROTOCOLS = ["TCP", "UDP"] as const;
const [A_PORT, B_PORT] = [21_000, 21_001];
/** The errors of a client that a rule rejects. */
const REFUSED = /^(EHOSTUNREACH|EACCES|ENETUNREACH|refused)$/;
let hosts = 0;

interface Scene {
  readonly host: HostUnderTest;
  readonly network: HostNetwork;
  readonly outside: string;
  readonly a: PodSandbox;
  readonly b: PodSandbox;
}

/** Sets up two published pods that answer on port 80 by TCP and UDP, and another host. */
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
      // Clients on other hosts keep their address; those that could not be answered directly appear with the bridge's.
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

test("ports that are not published don't answer", { skip }, async (t) => {
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

test("a pod can't reach servers on the host's loopback interface", { skip }, async (t) => {
  const { host, network, a } = await setUp(t);
  const secret = createServer((socket) => socket.end("secret")).listen(7001, "127.0.0.1");
  t.after(() => secret.close());
  await once(secret, "listening");
  // A pod with NET_ADMIN could send packets with loopback addresses to the host.
  const inPod = ["netns", "exec", nameOf(a), "sh", "-c"];
  await runCommand("ip", [
    ...inPod,
    `echo 1 > /proc/sys/net/ipv4/conf/all/route_localnet
     ip address del 127.0.0.1/8 dev lo
     ip route add 127.0.0.0/8 via ${network.gateway} src ${a.address}`,
  ]);
  assert.equal(await askFrom(nameOf(a), "TCP", "127.0.0.1", 7001), "silent");
  // Without the guard chain the address is reachable, which shows that the chain blocks it.
  await runCommand("nft", ["flush", "chain", "ip", `forage_${host.instance}`, "guard"]);
  assert.equal(await askFrom(nameOf(a), "TCP", "127.0.0.1", 7001), "secret");
});

test("a pod can't reach metadata addresses except for DNS, also after a restart of the agent, unless that is allowed", {
  skip,
}, async (t) => {
  const { host, network, outside, a } = await setUp(t);
  const metadata = "169.254.169.254";
  await runCommand("ip", ["-n", outside, "address", "add", metadata, "dev", "lo"]);
  await runCommand("ip", ["route", "add", metadata, "via", OUTSIDE_ADDRESS]);
  await Promise.all([80, 53].map((port) => host.answer(outside, "cloud", port)));
  // The host itself may reach them.
  assert.match(await ask("TCP", metadata, 80), /^cloud /);
  const reached = () => askFrom(nameOf(a), "TCP", metadata, 80);
  assert.match(await reached(), REFUSED);
  assert.match(await askFrom(nameOf(a), "UDP", metadata, 80), REFUSED);
  assert.match(await askFrom(nameOf(a), "TCP", metadata, 53), /^cloud /, "DNS");
  await network.close();
  // Checks without an agent, and after its return.
  assert.match(await reached(), REFUSED);
  const allowing = host.open(undefined, { access: { metadata: true, host: undefined } });
  await allowing.start([known(a)], signal);
  assert.match(await reached(), /^cloud /);
  await allowing.close();
  const denying = host.open();
  await denying.start([known(a)], signal);
  assert.match(await reached(), REFUSED);
  // An address of a cloud that the host itself has, as some metadata proxies need it.
  await runCommand("ip", ["address", "add", metadata, "dev", "lo"]);
  const own = createServer((socket) => socket.end("own")).listen(80, metadata);
  t.after(() => own.close());
  await once(own, "listening");
  assert.match(await reached(), REFUSED);
});

test("a restricted host accepts the listed ports from pods, and everything that leads to pods works", {
  skip,
}, async (t) => {
  const { host, network, outside, a, b } = await setUp(t);
  await network.close();
  const limited = host.open(undefined, {
    access: {
      metadata: false,
      host: {
        onBridge: [{ protocol: "tcp", port: 7101 }],
        everywhere: [{ protocol: "tcp", port: 7102 }],
      },
    },
  });
  await limited.start([known(a, A_PORT), known(b, B_PORT)], signal);
  for (const port of [7100, 7101, 7102]) {
    const server = createServer((socket) => socket.end(`port ${port}`)).listen(port);
    t.after(() => server.close());
    await once(server, "listening");
  }
  const from = (address: string, port: number) => askFrom(nameOf(a), "TCP", address, port);
  const linkLocal = await bridgeLinkLocal(`fg-${host.instance}`);
  for (const address of [HOST_ADDRESS, limited.gateway, ...(linkLocal ? [`${linkLocal}%eth0`] : [])])
    assert.match(await from(address, 7100), REFUSED, address);
  assert.match(await from(HOST_ADDRESS, 7101), REFUSED);
  assert.equal(await from(limited.gateway, 7101), "port 7101");
  assert.equal(await from(HOST_ADDRESS, 7102), "port 7102");
  // Other hosts are not restricted.
  assert.equal(await askFrom(outside, "TCP", HOST_ADDRESS, 7100), "port 7100");
  assert.equal(await ask("TCP", HOST_ADDRESS, 7100), "port 7100");
  for (const protocol of PROTOCOLS) {
    assert.match(await askFrom(nameOf(a), protocol, HOST_ADDRESS, B_PORT), /^b /, "a host port");
    assert.match(await askFrom(nameOf(a), protocol, b.address, 80), /^b /, "another pod");
    assert.match(await ask(protocol, "127.0.0.1", A_PORT), /^a /, "an answer to the host");
  }
});

test("host ports answer without interruption while the agent restarts", { skip }, async (t) => {
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

test("a detached pod leaves no link and no connection, and its port is free at once", {
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

/** Returns a pod as the next agent remembers it. */
function known(sandbox: PodSandbox, hostPort?: number) {
  const { podUid } = sandbox;
  return { podUid, sandbox, ports: hostPort === undefined ? [] : mappings(hostPort) };
}

/** Returns the link-local address of the bridge, or undefined without IPv6. */
async function bridgeLinkLocal(bridge: string): Promise<string | undefined> {
  const text = await runCommand("ip", ["-6", "address", "show", "dev", bridge, "scope", "link"]);
  return /inet6 (fe80:[0-9a-f:]+)/.exec(text)?.[1];
}

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
