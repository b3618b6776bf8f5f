import assert from "node:assert/strict";
import { type TestContext, type TestOptions, test } from "node:test";
import { probeAddress, putAddress, removeAddress } from "../src/load-balancer/host-addresses.ts";
import type { HeldAddress } from "../src/load-balancer/plan-addresses.ts";
import { listLinks } from "../src/network/host-links.ts";
import { CommandFailed, type RunCommand } from "../src/network/run-command.ts";

/** Two hosts on one network. Each runs commands as its agent does. */
export interface HostsUnderTest {
  readonly one: RunCommand;
  readonly two: RunCommand;
  /** The interface of each host on the network. */
  readonly interface: string;
  /** Addresses of the network that no host has. */
  readonly free: readonly [string, string];
  /** Waits for a short time. */
  readonly pause: () => Promise<void>;
}

/** Tests the contract of commands for load balancer addresses, on real and simulated hosts. IPv4 only. */
export function testHostAddresses(
  name: string,
  open: (t: TestContext) => Promise<HostsUnderTest>,
  options: TestOptions = {},
): void {
  const check = (what: string, run: (hosts: HostsUnderTest) => Promise<void>) =>
    test(`${name}: ${what}`, { timeout: 120_000, ...options }, async (t) => run(await open(t)));

  check("a host has an added address until it is removed", async (hosts) => {
    const [ip] = hosts.free;
    const held = { ip, interface: hosts.interface };
    assert.equal(await has(hosts.one, held), false);
    for (const leaseSeconds of [60, undefined, 60]) {
      await putAddress(hosts.one, held, leaseSeconds);
      assert.equal(await has(hosts.one, held), true);
    }
    assert.equal(await has(hosts.two, held), false);
    await removeAddress(hosts.one, held);
    assert.equal(await has(hosts.one, held), false);
    await assert.rejects(removeAddress(hosts.one, held), CommandFailed);
  });

  check("an address ends with its lease", async (hosts) => {
    const [ip, other] = hosts.free;
    const held = { ip, interface: hosts.interface };
    const lasting = { ip: other, interface: hosts.interface };
    await putAddress(hosts.one, lasting, undefined);
    await putAddress(hosts.one, held, 1);
    while (await has(hosts.one, held)) await hosts.pause();
    assert.equal(await has(hosts.one, lasting), true);
  });

  check(
    "a probe detects the address of another host, but neither a free one nor the host's own",
    async (hosts) => {
      const [taken, free] = hosts.free;
      const probe = async (ip: string) => {
        const links = await listLinks(hosts.one);
        const own = new Set(links.flatMap(({ address }) => address?.toLowerCase() ?? []));
        return probeAddress(hosts.one, { ip, interface: hosts.interface }, own);
      };
      await putAddress(hosts.two, { ip: taken, interface: hosts.interface }, undefined);
      assert.deepEqual(await Promise.all([probe(taken), probe(free)]), ["taken", "free"]);
      await putAddress(hosts.one, { ip: free, interface: hosts.interface }, undefined);
      await removeAddress(hosts.two, { ip: taken, interface: hosts.interface });
      assert.deepEqual(await Promise.all([probe(taken), probe(free)]), ["free", "free"]);
    },
  );
}

async function has(run: RunCommand, { ip, interface: name }: HeldAddress): Promise<boolean> {
  const links = await listLinks(run);
  return links.some(
    ({ ifname, addr_info }) => ifname === name && addr_info.some(({ local }) => local === ip),
  );
}
