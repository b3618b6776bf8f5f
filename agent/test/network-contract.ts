import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import {
  NetworkError,
  type NetworkErrorCode,
  type PodNetwork,
  type PodSandbox,
  type PortRequest,
} from "../src/network/network.ts";
import type { PortRange } from "../src/network/port-allocator.ts";

/** The range from which every tested network allocates: small enough to be used up. */
export const CONTRACT_HOST_PORTS: PortRange = { first: 21_000, last: 21_009 };

/** A host on which networks are opened one after the other, like an agent's runs. */
export interface NetworkHost {
  /** Returns a network of the same instance, not started. */
  open(): PodNetwork;
  /** Removes what a reboot removes. */
  reboot(): Promise<void>;
  /** Breaks a sandbox without notifying the network. */
  destroy(sandbox: PodSandbox): Promise<void>;
  /** Returns the number of pods' sandboxes and of used addresses, without prepared ones. */
  usedSandboxes(): Promise<number>;
  /** Returns the current rules, such as `tcp 21000` to `10.0.0.2 80`. */
  published(): Promise<ReadonlyMap<string, string>>;
  /** Uses a port as another program would. */
  occupy(protocol: "TCP" | "UDP", port: number): Promise<void>;
}

const signal = new AbortController().signal;
const WEB: PortRequest = { container: "web", containerPort: 80, protocol: "TCP" };
const DNS: PortRequest = { container: "web", containerPort: 53, protocol: "UDP" };
const SIGNALS: PortRequest = { container: "web", containerPort: 5000, protocol: "SCTP" };

/** Tests the contract of PodNetwork. `setUp` creates a separate host for each test, and removes it afterwards. */
export function testPodNetwork(name: string, setUp: (t: TestContext) => Promise<NetworkHost>): void {
  const check = (what: string, run: (host: NetworkHost, t: TestContext) => Promise<void>) =>
    test(`${name}: ${what}`, async (t) => run(await setUp(t), t));

  testSandboxes(check);
  testPorts(check);
  testRestarts(check);
}

type Check = (what: string, run: (host: NetworkHost, t: TestContext) => Promise<void>) => void;

function testSandboxes(check: Check): void {
  check("each pod gets its own sandbox and keeps it", async (host, t) => {
    const network = await started(host, t);
    const [a, b, again] = await Promise.all(["a", "b", "a"].map((uid) => network.attach(uid, signal)));
    assert.deepEqual(again, a);
    assert.notEqual(a?.address, b?.address);
    assert.notEqual(a?.namespacePath, b?.namespacePath);
    assert.equal(a?.podUid, "a");
    assert.deepEqual(await network.attach("a", signal), a);
    assert.equal(await host.usedSandboxes(), 2);
  });

  check("detects and replaces a broken sandbox", async (host, t) => {
    const network = await started(host, t);
    const broken = await network.attach("a", signal);
    const other = await network.attach("b", signal);
    assert.equal(await network.check(broken), true);
    await host.destroy(broken);
    assert.equal(await network.check(broken), false);
    assert.equal(await network.check(other), true);
    assert.deepEqual(await network.findLost([other, broken]), [broken]);
    const replaced = await network.attach("a", signal);
    assert.equal(await network.check(replaced), true);
    assert.notEqual(replaced.namespacePath, broken.namespacePath);
    assert.equal(await network.check(broken), false);
  });

  check("detach leaves nothing behind, and accepts unknown uids", async (host, t) => {
    const network = await started(host, t);
    const sandbox = await network.attach("a", signal);
    await network.publish(sandbox, await network.allocatePorts("a", [WEB]), signal);
    await network.detach("a", signal);
    await network.detach("a", signal);
    await network.detach("unknown", signal);
    assert.equal(await host.usedSandboxes(), 0);
    assert.deepEqual(await host.published(), new Map());
    assert.equal(await network.check(sandbox), false);
  });

  check("calls with an aborted signal do nothing", async (host, t) => {
    const network = await started(host, t);
    const sandbox = await network.attach("a", signal);
    const mappings = await network.allocatePorts("a", [WEB]);
    const aborted = AbortSignal.abort();
    await assert.rejects(network.attach("b", aborted), failsWith("ABORTED"));
    await assert.rejects(network.detach("a", aborted), failsWith("ABORTED"));
    await assert.rejects(network.publish(sandbox, mappings, aborted), failsWith("ABORTED"));
    assert.equal(await host.usedSandboxes(), 1);
    assert.deepEqual(await host.published(), new Map());
  });

  check("rejects calls before start and after close", async (host) => {
    const network = host.open();
    await assert.rejects(network.attach("a", signal), failsWith("SETUP_FAILED"));
    await network.start([], signal);
    await network.close();
    await assert.rejects(network.attach("a", signal), failsWith("SETUP_FAILED"));
    assert.equal(await host.usedSandboxes(), 0);
  });
}

function testPorts(check: Check): void {
  check("a pod gets its own host ports and keeps them", async (host, t) => {
    const network = await started(host, t);
    const both = [WEB, DNS];
    const [a, b] = await Promise.all(["a", "b"].map((uid) => network.allocatePorts(uid, both)));
    assert.deepEqual(
      a?.map(({ hostPort: _, ...request }) => request),
      both,
      "in the requested order",
    );
    const tcp = [...(a ?? []), ...(b ?? [])].filter((it) => it.protocol === "TCP").map((it) => it.hostPort);
    assert.equal(new Set(tcp).size, 2);
    for (const port of tcp) assert.ok(port >= CONTRACT_HOST_PORTS.first && port <= CONTRACT_HOST_PORTS.last);
    assert.deepEqual(await network.allocatePorts("a", [DNS, WEB]), a?.toReversed());
  });

  check("allocates all ports or none, and detach releases them", async (host, t) => {
    const network = await started(host, t);
    const eight = Array.from({ length: 8 }, (_, index) => ({ ...WEB, containerPort: index + 1 }));
    const held = await network.allocatePorts("a", eight);
    await assert.rejects(network.allocatePorts("b", eight), failsWith("NO_PORT_LEFT"));
    assert.equal((await network.allocatePorts("c", eight.slice(0, 2))).length, 2, "b holds none");
    await network.detach("a", signal);
    const freed = await network.allocatePorts("b", eight);
    assert.deepEqual(freed.map((it) => it.hostPort).sort(), held.map((it) => it.hostPort).sort());
  });

  check("releases ports that are no longer published, and keeps the others", async (host, t) => {
    const network = await started(host, t);
    const sandbox = await network.attach("a", signal);
    const eight = Array.from({ length: 8 }, (_, index) => ({ ...WEB, containerPort: index + 1 }));
    const before = await network.allocatePorts("a", eight);
    await network.publish(sandbox, before, signal);
    const kept = await network.allocatePorts("a", eight.slice(0, 1));
    await network.publish(sandbox, kept, signal);
    network.keepPorts("a", kept);
    assert.deepEqual(kept, before.slice(0, 1));
    assert.equal((await host.published()).size, 1);
    assert.equal((await network.allocatePorts("b", eight.slice(0, 7))).length, 7);
  });

  check("a pod on the host's network has its own ports, which take precedence", async (host, t) => {
    const network = await started(host, t);
    const own = { ...WEB, containerPort: CONTRACT_HOST_PORTS.first };
    assert.deepEqual(await network.acquireHostPorts("h", [own, DNS]), [
      { ...own, hostPort: own.containerPort },
      { ...DNS, hostPort: DNS.containerPort },
    ]);
    assert.equal((await network.acquireHostPorts("h", [own, DNS])).length, 2, "again");
    await assert.rejects(network.acquireHostPorts("i", [WEB, own]), failsWith("NO_PORT_LEFT"));
    assert.equal((await network.acquireHostPorts("j", [WEB])).length, 1, "i has none");
    const { first, last } = CONTRACT_HOST_PORTS;
    const all = Array.from({ length: last - first + 1 }, (_, index) => ({
      ...WEB,
      containerPort: index + 1,
    }));
    await assert.rejects(network.allocatePorts("a", all), failsWith("NO_PORT_LEFT"));
    await network.detach("h", signal);
    assert.equal((await network.allocatePorts("a", all)).length, all.length);
  });

  check("the host's own network is never lost", async (host, t) => {
    const network = await started(host, t);
    const sandbox = { podUid: "h", namespacePath: "host", address: "192.0.2.1" };
    assert.deepEqual(await network.findLost([sandbox]), []);
    assert.equal(await network.check(sandbox), true);
  });

  check("does not allocate ports of other programs", async (host, t) => {
    const network = await started(host, t);
    const { first, last } = CONTRACT_HOST_PORTS;
    for (let port = first; port < last; port++) await host.occupy(port % 2 === 0 ? "TCP" : "UDP", port);
    const found = await network.allocatePorts("a", [WEB, { ...WEB, containerPort: 81 }]);
    for (const { hostPort } of found) assert.equal(hostPort % 2, 1, `${hostPort}`);
  });

  check("publish makes the rules equal to its argument", async (host, t) => {
    const network = await started(host, t);
    const sandbox = await network.attach("a", signal);
    const mappings = await network.allocatePorts("a", [WEB, DNS, SIGNALS]);
    const [web, dns, signals] = mappings.map((it) => it.hostPort);
    await network.publish(sandbox, mappings, signal);
    await network.publish(sandbox, mappings, signal);
    const all = new Map([
      [`tcp ${web}`, `${sandbox.address} 80`],
      [`udp ${dns}`, `${sandbox.address} 53`],
      [`sctp ${signals}`, `${sandbox.address} 5000`],
    ]);
    assert.deepEqual(await host.published(), all);
    await network.publish(sandbox, mappings.slice(0, 1), signal);
    all.delete(`udp ${dns}`);
    all.delete(`sctp ${signals}`);
    assert.deepEqual(await host.published(), all);
    const atOneAddress = { ...WEB, hostPort: web ?? 0, hostIp: "127.0.0.2" };
    await network.publish(sandbox, [atOneAddress], signal);
    assert.deepEqual(await host.published(), new Map([[`127.0.0.2 tcp ${web}`, `${sandbox.address} 80`]]));
    await network.unpublish("a", signal);
    await network.unpublish("unknown", signal);
    assert.deepEqual(await host.published(), new Map());
    assert.deepEqual(
      await network.allocatePorts("a", [WEB, DNS, SIGNALS]),
      mappings,
      "unpublishing keeps the ports",
    );
  });

  check("the last of concurrent calls to publish decides", async (host, t) => {
    const network = await started(host, t);
    const uids = ["a", "b", "c", "d", "e"];
    const expected = new Map<string, string>();
    await Promise.all(
      uids.map(async (uid, index) => {
        const sandbox = await network.attach(uid, signal);
        const mappings = await network.allocatePorts(uid, [WEB]);
        const published = network.publish(sandbox, mappings, signal);
        if (index % 2 === 0) await Promise.all([published, network.unpublish(uid, signal)]);
        else expected.set(`tcp ${mappings[0]?.hostPort}`, `${sandbox.address} 80`);
        await published;
      }),
    );
    assert.deepEqual(await host.published(), expected);
  });
}

function testRestarts(check: Check): void {
  check("the next run adopts known pods and removes the others", async (host, t) => {
    const before = await started(host, t);
    const known = await before.attach("known", signal);
    const ports = await before.allocatePorts("known", [WEB]);
    await before.publish(known, ports, signal);
    const stale = await before.attach("stale", signal);
    await before.publish(stale, await before.allocatePorts("stale", [WEB]), signal);
    await before.close();
    assert.equal(await host.usedSandboxes(), 2, "closing does not affect pods");
    assert.equal((await host.published()).size, 2);

    const after = host.open();
    t.after(() => after.close());
    await after.start([{ podUid: "known", ports }], signal);
    assert.equal(await host.usedSandboxes(), 1);
    assert.deepEqual([...(await host.published()).values()], [`${known.address} 80`]);
    assert.equal(await after.check(known), true);
    assert.equal(await after.check(stale), false);
    assert.deepEqual(await after.attach("known", signal), known);
    assert.deepEqual(await after.allocatePorts("known", [WEB]), ports);
    await after.detach("known", signal);
    assert.equal(await host.usedSandboxes(), 0);
  });

  check("adopts pods of an interrupted run", async (host, t) => {
    const before = await started(host, t);
    const known = await before.attach("known", signal);
    const after = host.open();
    t.after(() => after.close());
    await after.start([{ podUid: "known", ports: [] }], signal);
    assert.deepEqual(await after.attach("known", signal), known);
  });

  check("after a reboot pods get new sandboxes and their old ports", async (host, t) => {
    const before = await started(host, t);
    const old = await before.attach("a", signal);
    const ports = await before.allocatePorts("a", [WEB, DNS]);
    await before.publish(old, ports, signal);
    await before.close();
    await host.reboot();

    const after = host.open();
    t.after(() => after.close());
    await after.start([{ podUid: "a", ports }], signal);
    assert.equal(await host.usedSandboxes(), 0, "no lease is left either");
    assert.equal(await after.check(old), false);
    const sandbox = await after.attach("a", signal);
    assert.equal(await after.check(sandbox), true);
    assert.deepEqual(await after.allocatePorts("a", [WEB, DNS]), ports);
    await after.publish(sandbox, ports, signal);
    assert.equal((await host.published()).get(`tcp ${ports[0]?.hostPort}`), `${sandbox.address} 80`);
  });

  check("the first of two known pods keeps a port that both claim", async (host, t) => {
    const network = host.open();
    t.after(() => network.close());
    const ports = [{ ...WEB, hostPort: CONTRACT_HOST_PORTS.first }];
    await network.start(
      [
        { podUid: "a", ports },
        { podUid: "b", ports },
      ],
      signal,
    );
    assert.deepEqual(await network.allocatePorts("a", [WEB]), ports);
    assert.notEqual((await network.allocatePorts("b", [WEB]))[0]?.hostPort, CONTRACT_HOST_PORTS.first);
  });
}

async function started(host: NetworkHost, t: TestContext): Promise<PodNetwork> {
  const network = host.open();
  t.after(() => network.close());
  await network.start([], signal);
  return network;
}

function failsWith(code: NetworkErrorCode): (error: unknown) => boolean {
  return (error) => error instanceof NetworkError && error.code === code;
}
