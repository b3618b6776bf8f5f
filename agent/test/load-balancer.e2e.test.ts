import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { describe, type TestContext, test } from "node:test";
import { enterOwnNetwork, whyNoOwnNetwork } from "../../hack/lib/own-network.ts";
import { LEASE_SECONDS } from "../src/load-balancer/plan-addresses.ts";
import { Lan, type LanHost } from "./lan.ts";
import { until } from "./until.ts";

const obstacle = whyNoOwnNetwork() ?? whyNoTools();
if (obstacle === undefined) enterOwnNetwork();
const limit = { skip: obstacle ?? false, timeout: 180_000 };

let networks = 0;

const V4 = "192.0.2.50";
const V6 = "2001:db8::50";

// These tests mostly wait for leases to end and for random delays.
describe("addresses of load balancers on a network", { concurrency: 3 }, () => {
  for (const ip of [V4, V6]) {
    test(`a neighbour learns at once that ${ip} has moved to another host`, limit, async (t) => {
      const { one, two, client } = await setUp(t);
      // Without a lease, so that the load of the machine doesn't matter.
      await one.setState({ ips: [ip], alone: true });
      assert.equal(await client.ask(ip), "host1");
      assert.equal(await client.neighbour(ip), await one.hardwareAddress());
      // The previous host isn't notified yet.
      await two.setState({ ips: [ip], alone: true });
      await until(
        "the client has received the announcement",
        async () => (await client.neighbour(ip)) === (await two.hardwareAddress()),
      );
      // On a busy machine a repeated announcement of the first host may still arrive, but the second host's follow it.
      await until("the other host is reached", async () => (await client.ask(ip)) === "host2");
      await one.setState({ ips: [] });
      await until("the host gives it up", async () => (await one.leaseOf(ip)) === undefined);
      assert.equal(await client.ask(ip), "host2");
    });

    test(
      `a disconnected host releases ${ip} while another has it, and takes it back afterwards`,
      limit,
      async (t) => {
        const { one, two, client } = await setUp(t);
        await one.setState({ ips: [ip] });
        await one.setState({ ips: [ip], heard: false });
        await two.setState({ ips: [ip], alone: true });
        await until("the host gives way", async () => (await one.leaseOf(ip)) === undefined);
        assert.equal(await client.ask(ip), "host2");
        await two.kill();
        await two.ip("address", "flush", "to", ip);
        await until("the host takes it again", async () => (await one.leaseOf(ip)) !== undefined);
        await until("it is reached there", async () => (await client.ask(ip)) === "host1");
        const events = one.events.map((line) => line.split(" ")[0]);
        assert.match(events.join(), /announced.*taken-over.*left.*announced/);
      },
    );
  }

  test("of two disconnected hosts that both hold an address, one keeps it", limit, async (t) => {
    const { one, two, client } = await setUp(t);
    await two.connected(false);
    await one.setState({ ips: [V4], heard: false });
    await two.setState({ ips: [V4], heard: false });
    for (const host of [one, two])
      await until("each has it by itself", async () => (await host.leaseOf(V4)) !== undefined);
    await two.connected(true);
    const holders = async (): Promise<number> =>
      (await Promise.all([one, two].map((host) => host.leaseOf(V4)))).filter((it) => it !== undefined).length;
    await until("one of them gives way", async () => (await holders()) < 2);
    await until(
      "one of them has it",
      async () => (await holders()) === 1 && /host[12]/.test(await client.ask(V4)),
    );
  });

  test(
    "a host without its coordinator continues, and one without its agent continues until the end of the lease",
    limit,
    async (t) => {
      const { one, client } = await setUp(t);
      await one.setState({ ips: [V4, V6] });
      await one.setState({ ips: [V4, V6], heard: false });
      for (const ip of [V4, V6]) {
        await until(
          "some of the lease is over",
          async () => ((await one.leaseOf(ip)) ?? LEASE_SECONDS) < LEASE_SECONDS - 2,
        );
        await until("it is renewed", async () => ((await one.leaseOf(ip)) ?? 0) > LEASE_SECONDS - 2);
      }
      await until("it is reached there", async () => (await client.ask(V4)) === "host1");
      await one.kill();
      for (const ip of [V4, V6])
        await until("the kernel drops it", async () => (await one.leaseOf(ip)) === undefined);
    },
  );

  test("the only host that can announce an address keeps it without its agent", limit, async (t) => {
    const { one } = await setUp(t);
    await one.setState({ ips: [V4, V6], alone: true });
    assert.deepEqual(
      [await one.leaseOf(V4), await one.leaseOf(V6)],
      [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY],
    );
    await one.setState({ ips: [V4, V6] });
    for (const ip of [V4, V6])
      await until("it has a lease", async () => ((await one.leaseOf(ip)) ?? 99) <= LEASE_SECONDS);
  });

  test(
    "a new agent keeps the addresses, and after a reboot announces them again without its coordinator",
    limit,
    async (t) => {
      const { one, client } = await setUp(t);
      // Without a lease, so that the duration of an agent's start doesn't matter.
      await one.setState({ ips: [V4], alone: true });
      await one.kill();
      await one.setState({ ips: [V4], heard: false, started: false });
      await until("the new agent has it", async () => ((await one.leaseOf(V4)) ?? 99) <= LEASE_SECONDS);
      assert.deepEqual(one.events, [one.events[0]], "it was announced once");
      await one.kill();
      await one.ip("address", "flush", "to", V4);
      await one.setState({ ips: [V4], heard: false, started: false });
      assert.equal(await one.leaseOf(V4), undefined, "services have no rules yet");
      await one.setState({ ips: [V4], heard: false });
      await until("it is there again", async () => (await one.leaseOf(V4)) !== undefined);
      await until("it is reached there", async () => (await client.ask(V4)) === "host1");
    },
  );

  test("removes addresses that an earlier agent has left, and keeps those of the host", limit, async (t) => {
    const { one } = await setUp(t);
    await one.setState({ ips: [V4, V6], alone: true });
    await one.kill();
    await one.setState({ ips: [] });
    for (const ip of [V4, V6]) await until("it is gone", async () => (await one.leaseOf(ip)) === undefined);
    await one.ip("address", "add", `${V4}/32`, "dev", "eth0");
    await one.setState({ ips: [V4] });
    await until("it says so", () => one.events.some((line) => /as its own/.test(line)));
    await one.setState({ ips: [] });
    await one.setState({ ips: [V6] });
    await until("the next is there", async () => (await one.leaseOf(V6)) !== undefined);
    assert.equal(await one.leaseOf(V4), Number.POSITIVE_INFINITY);
  });
});

async function setUp(t: TestContext): Promise<{ one: LanHost; two: LanHost; client: LanHost }> {
  const lan = await Lan.make(t, networks++);
  return { one: await lan.host(1), two: await lan.host(2), client: await lan.host(3) };
}

function whyNoTools(): string | undefined {
  if (!existsSync("/proc/net/if_inet6")) return "needs IPv6";
  const missing = ["/usr/bin/busybox", "/usr/bin/ndisc6", "/usr/bin/ndptool"].find(
    (path) => !existsSync(path),
  );
  return missing === undefined ? undefined : `needs ${missing}`;
}
