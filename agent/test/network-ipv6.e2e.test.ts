import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { isIPv6 } from "node:net";
import { basename } from "node:path";
import { type TestContext, test } from "node:test";
import { enterOwnNetwork, whyNoOwnIpv6 } from "../../hack/lib/own-network.ts";
import type { HostNetwork } from "../src/network/host-network.ts";
import { addressesOf, type PodSandbox, type PortMapping } from "../src/network/network.ts";
import { runCommand } from "../src/network/run-command.ts";
import { ask } from "./ask.ts";
import { askFrom, HostUnderTest } from "./host-under-test.ts";
import {
  HOST_ADDRESS,
  HOST_ADDRESS6,
  makeOutsideHost,
  OUTSIDE_ADDRESS,
  OUTSIDE_ADDRESS6,
} from "./outside-host.ts";
import { until } from "./until.ts";

const obstacle = whyNoOwnIpv6();
if (obstacle === undefined) enterOwnNetwork();
const limit = { skip: obstacle ?? false, timeout: 120_000 };

const signal = new AbortController().signal;
const PROTOCOLS = ["TCP", "UDP"] as const;
const GATEWAY6 = "fd64::1";
const [A_PORT, B_PORT] = [21_000, 21_001];
let hosts = 0;

interface Scene {
  readonly host: HostUnderTest;
  readonly network: HostNetwork;
  readonly outside: string;
  readonly a: PodSandbox;
  readonly b: PodSandbox;
}

test("host ports answer in both families, from everywhere", limit, async (t) => {
  const { outside, a, b } = await setUp(t);
  const [ipOfA, ipOfB] = [a.address6 ?? "", b.address6 ?? ""];
  assert.ok(isIPv6(ipOfA) && isIPv6(ipOfB) && ipOfA !== ipOfB);
  for (const protocol of PROTOCOLS) {
    assert.equal(await askFrom(outside, protocol, HOST_ADDRESS, A_PORT), `a ${OUTSIDE_ADDRESS}`);
    assert.equal(await askFrom(outside, protocol, HOST_ADDRESS6, A_PORT), `a ${OUTSIDE_ADDRESS6}`);
    assert.equal(await ask(protocol, HOST_ADDRESS6, A_PORT), `a ${HOST_ADDRESS6}`);
    assert.equal(await ask(protocol, "::1", A_PORT), "refused", "but for the loopback address");
    assert.equal(await ask(protocol, GATEWAY6, B_PORT), `b ${GATEWAY6}`);
    assert.equal(await askFrom(nameOf(a), protocol, HOST_ADDRESS6, B_PORT), `b ${GATEWAY6}`, "other pod");
    assert.equal(await askFrom(nameOf(a), protocol, HOST_ADDRESS6, A_PORT), `a ${GATEWAY6}`, "itself");
    assert.equal(await askFrom(nameOf(a), protocol, ipOfB, 80), `b ${ipOfA}`, "directly");
  }
});

test("pods reach other hosts by the host's address", limit, async (t) => {
  const { host, outside, a } = await setUp(t);
  await host.answer(outside, "outside", 7000);
  for (const protocol of PROTOCOLS)
    assert.equal(await askFrom(nameOf(a), protocol, OUTSIDE_ADDRESS6, 7000), `outside ${HOST_ADDRESS6}`);
});

test("a pod can't reach an IPv6 metadata address", limit, async (t) => {
  const { host, outside, a } = await setUp(t);
  const metadata = "fd00:ec2::254";
  await runCommand("ip", ["-n", outside, "address", "add", metadata, "dev", "lo"]);
  await runCommand("ip", ["route", "add", metadata, "via", OUTSIDE_ADDRESS6]);
  await host.answer(outside, "cloud", 80);
  assert.match(await ask("TCP", metadata, 80), /^cloud /);
  assert.match(await askFrom(nameOf(a), "TCP", metadata, 80), /^(EHOSTUNREACH|EACCES)$/);
});

test("an IPv6 UDP client follows the host port from pod to pod", limit, async (t) => {
  const { network, b } = await setUp(t);
  const from = { udpPort: 40_000 };
  assert.match(await ask("UDP", HOST_ADDRESS6, A_PORT, from), /^a /);
  await network.detach("a", signal);
  assert.equal(await ask("UDP", HOST_ADDRESS6, A_PORT, from), "refused");
  await network.publish(b, mappings(A_PORT), signal);
  assert.match(await ask("UDP", HOST_ADDRESS6, A_PORT, from), /^b /);
});

test("pods without IPv6 continue without it, new pods have it, and vice versa", limit, async (t) => {
  const host = await HostUnderTest.setUp(t, hosts++);
  const known = ["a", "b"].map((podUid) => ({ podUid, ports: [] }));
  const startWith = async (podCidr6: string | undefined): Promise<HostNetwork> => {
    const network = host.open(undefined, { podCidr6 });
    await network.start(known, signal);
    return network;
  };
  const before = await startWith(undefined);
  const a = await before.attach("a", signal);
  assert.deepEqual(addressesOf(a), [a.address]);
  await before.close();
  const both = await startWith("fd64::/64");
  assert.deepEqual(await both.attach("a", signal), a);
  const b = await both.attach("b", signal);
  assert.ok(isIPv6(b.address6 ?? ""));
  assert.deepEqual(await both.findLost([a, b]), []);
  await both.close();
  const other = await startWith("fd65::/64");
  const { address6: _, ...fourOnly } = b;
  assert.deepEqual(await other.attach("b", signal), fourOnly, "an address of another network is none");
  await other.close();
  const again = await startWith(undefined);
  t.after(() => again.close());
  assert.deepEqual(await again.attach("b", signal), fourOnly);
  assert.deepEqual(await again.findLost([a, b]), [], "what runs is not taken for lost");
  assert.equal((await again.attach("c", signal)).address6, undefined);
});

test("a bridge that was briefly down recovers its state", limit, async (t) => {
  const { host } = await setUp(t);
  for (const state of ["down", "up"]) await runCommand("ip", ["link", "set", `fg-${host.instance}`, state]);
  // It takes a while until its ports are used again.
  await until("the pod answers", async () => (await ask("TCP", HOST_ADDRESS6, A_PORT)).startsWith("a "));
});

test("the host ignores router advertisements of pods, with IPv6 or without", limit, async (t) => {
  for (const podCidr6 of [undefined, "fd64::/64"]) {
    const host = await HostUnderTest.setUp(t, hosts++, { podCidr6 });
    const network = host.open();
    await network.start([], signal);
    const accept = `/proc/sys/net/ipv6/conf/fg-${host.instance}/accept_ra`;
    assert.equal((await readFile(accept, "utf8")).trim(), "0");
    await network.close();
    await runCommand("ip", ["link", "del", `fg-${host.instance}`]);
  }
});

test(
  "links that accepted router advertisements still accept them, and links of pods never do",
  limit,
  async (t) => {
    const forwarding = "/proc/sys/net/ipv6/conf/all/forwarding";
    await makeOutsideHost(t);
    const uplink = "/proc/sys/net/ipv6/conf/uplink0/accept_ra";
    await writeFile(forwarding, "0");
    await writeFile(uplink, "1");
    const host = await HostUnderTest.setUp(t, hosts++, { podCidr6: "fd64::/64" });
    for (let start = 0; start < 2; start++) {
      const network = host.open();
      await network.start([{ podUid: "a", ports: [] }], signal);
      const a = await network.attach("a", signal);
      assert.equal((await readFile(forwarding, "utf8")).trim(), "1");
      assert.equal((await readFile(uplink, "utf8")).trim(), "2");
      const ofPod = await runCommand("ip", [
        ...["netns", "exec", nameOf(a)],
        ...["cat", "/proc/sys/net/ipv6/conf/eth0/accept_ra"],
      ]);
      assert.equal(ofPod.trim(), "0");
      await network.close();
    }
  },
);

test("restores a lost IPv6 table, and removal leaves nothing behind", limit, async (t) => {
  const { host, network } = await setUp(t);
  await network.close();
  await runCommand("nft", ["delete", "table", "ip6", `forage_${host.instance}`]);
  const next = host.open();
  t.after(() => next.close());
  await next.start([{ podUid: "a", ports: mappings(A_PORT) }], signal);
  assert.match(await ask("TCP", HOST_ADDRESS6, A_PORT), /^a /);
  await next.detach("a", signal);
  assert.equal(await host.usedSandboxes(), 0, "the other pod was not known any more");
});

async function setUp(t: TestContext): Promise<Scene> {
  const outside = await makeOutsideHost(t);
  const host = await HostUnderTest.setUp(t, hosts++, { podCidr6: "fd64::/64" });
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

function mappings(hostPort: number): PortMapping[] {
  return PROTOCOLS.map((protocol) => ({ container: "web", containerPort: 80, protocol, hostPort }));
}

function nameOf(sandbox: PodSandbox): string {
  return basename(sandbox.namespacePath);
}
