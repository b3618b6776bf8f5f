import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { VirtualClock } from "@forage/common/virtual-clock";
import { ServiceState } from "@forage/proto/forage/agent/v1/agent";
import { testHeldRecords } from "../../test/held-records-contract.ts";
import { CommandFailed, type RunCommand } from "../network/run-command.ts";
import type { HeldRecords } from "./held-addresses-file.ts";
import { LoadBalancer } from "./load-balancer.ts";
import type { HeldAddress } from "./plan-addresses.ts";

testHeldRecords("keeps records in memory", async () => new HeldInMemory());

const IPS = ["192.0.2.50", "192.0.2.51", "192.0.2.52"];

test("adds all addresses before it announces the first, and repeats each announcement seven times", async (t) => {
  const { balancer, host, clock } = setUp(t);
  host.desired(IPS);
  balancer.setCurrent(true);
  await balancer.start();
  const kinds = host.calls.map((call) =>
    call.includes("arping") ? "announce" : call.split(" ").slice(0, 3).join(" "),
  );
  assert.deepEqual(kinds.slice(-9), [
    ...IPS.map(() => "ip address replace"),
    ...IPS.flatMap(() => ["announce", "announce"]),
  ]);
  host.calls.length = 0;
  await pass(clock, 60_000);
  const announced = host.calls.filter((call) => call.includes("arping") && call.includes("-U"));
  assert.equal(announced.length, 7 * IPS.length);
});

test("renews leases and checks their records several times per lease, and does nothing without addresses", async (t) => {
  const { balancer, host, clock, held } = setUp(t);
  balancer.setCurrent(true);
  await balancer.start();
  await pass(clock, 60_000);
  assert.equal(host.calls.length, 0, host.calls.join());
  host.desired(IPS.slice(0, 1));
  await balancer.update();
  host.calls.length = 0;
  await pass(clock, 30_000);
  const renewals = host.calls.filter((call) =>
    call.startsWith("ip address replace 192.0.2.50/32 dev eth0 valid_lft 30"),
  );
  assert.ok(renewals.length >= 5, `${renewals.length}`);
  assert.ok(held.checks >= 5, `${held.checks}`);
});

test("of two disconnected hosts without the address, the first that finds it unused takes it", async (t) => {
  const { balancer, host, clock } = setUp(t);
  host.desired(IPS.slice(0, 1));
  await balancer.start();
  assert.ok(host.has.has("192.0.2.50"), "no other host had it");
  host.taken = true;
  await pass(clock, 10_000);
  assert.ok(!host.has.has("192.0.2.50"), "it gives way");
  await pass(clock, 60_000);
  assert.ok(!host.has.has("192.0.2.50"));
  host.taken = false;
  await pass(clock, 25_000);
  assert.ok(host.has.has("192.0.2.50"));
  host.taken = true;
  balancer.setCurrent(true);
  await balancer.update();
  await pass(clock, 20_000);
  assert.ok(host.has.has("192.0.2.50"), "the coordinator's word counts more");
});

test("a host whose services are lost keeps its addresses until it has the services again", async (t) => {
  const lost = { is: true };
  const { balancer, host, clock, held } = setUp(t, () => lost.is);
  await held.add([{ ip: "192.0.2.50", interface: "eth0" }]);
  host.has.add("192.0.2.50");
  await balancer.update();
  await pass(clock, 20_000);
  assert.ok(host.calls.some((call) => call.startsWith("ip address replace 192.0.2.50/32")));
  assert.ok(host.has.has("192.0.2.50"));
  lost.is = false;
  balancer.setCurrent(true);
  await balancer.start();
  assert.ok(!host.has.has("192.0.2.50"));
});

test("a failed probe changes nothing and is reported", async (t) => {
  const { balancer, host, clock } = setUp(t);
  host.desired(IPS.slice(0, 1));
  host.taken = undefined;
  await balancer.start();
  await pass(clock, 20_000);
  assert.ok(host.has.has("192.0.2.50"));
  assert.match(balancer.problems().join(), /can't be found out/);
});

test("a probe's result after the coordinator has reconnected changes nothing", async (t) => {
  const { balancer, host } = setUp(t);
  host.desired(IPS.slice(0, 1));
  await balancer.start();
  const answer = Promise.withResolvers<void>();
  host.beforeAnswer = answer.promise;
  host.taken = true;
  const looked = balancer.update();
  await settled();
  balancer.setCurrent(true);
  answer.resolve();
  await looked;
  await balancer.update();
  assert.deepEqual(
    host.calls.filter((call) => call.startsWith("ip address del")),
    [],
  );
});

test("an address that can't be recorded isn't added to the host", async (t) => {
  const { balancer, host, held } = setUp(t);
  host.desired(IPS.slice(0, 1));
  held.isFull = true;
  balancer.setCurrent(true);
  await balancer.start();
  assert.deepEqual([...host.has], []);
  assert.match(balancer.problems().join(), /no space left/);
  held.isFull = false;
  await balancer.update();
  assert.deepEqual([...host.has], ["192.0.2.50"]);
});

test("a removed address is no longer announced, and nothing runs after close", async (t) => {
  const { balancer, host, clock } = setUp(t);
  host.desired(IPS.slice(0, 2));
  balancer.setCurrent(true);
  await balancer.start();
  host.desired(IPS.slice(1, 2));
  await balancer.update();
  host.calls.length = 0;
  await pass(clock, 2_000);
  const announced = () => host.calls.filter((call) => call.includes("arping") && call.includes("-U"));
  assert.ok(announced().length > 0 && announced().every((call) => call.includes("192.0.2.51")));
  await balancer.close();
  host.calls.length = 0;
  await pass(clock, 60_000);
  assert.deepEqual(announced(), []);
});

function setUp(t: TestContext, servicesLost: () => boolean = () => false) {
  const host = new FakeHost();
  const clock = new VirtualClock();
  const held = new HeldInMemory();
  const balancer = new LoadBalancer({
    ...{ held, servicesLost },
    services: { services: host.services, clusterDomain: "", virtualIpRanges: [] },
    node: "here",
    interface: undefined,
    families: [4],
    clock,
    random: () => 0.5,
    run: host.run,
    onEvent: () => undefined,
    onProblem: () => undefined,
  });
  t.after(() => balancer.close());
  return { balancer, host, clock, held };
}

class HeldInMemory implements HeldRecords {
  held: readonly HeldAddress[] = [];
  isFull = false;
  checks = 0;

  has(held: HeldAddress): boolean {
    return this.held.some((it) => it.ip === held.ip && it.interface === held.interface);
  }

  async add(held: readonly HeldAddress[]): Promise<void> {
    if (this.isFull) throw new Error("no space left on the device");
    this.held = [...this.held, ...held.filter((it) => !this.has(it))];
  }

  async check(): Promise<void> {
    this.checks++;
  }

  async remove({ ip, interface: name }: HeldAddress): Promise<void> {
    this.held = this.held.filter((it) => it.ip !== ip || it.interface !== name);
  }
}

/** The interfaces and neighbours of a host, as far as the commands in use read them. */
class FakeHost {
  readonly services = new Map<string, ServiceState>();
  readonly calls: string[] = [];
  readonly has = new Set<string>();
  /** Whether another host answers for the addresses. Undefined: the probe fails. */
  taken: boolean | undefined = false;
  beforeAnswer: Promise<void> = Promise.resolve();

  desired(loadBalancerIps: readonly string[]): void {
    const service = { loadBalancerIps: [...loadBalancerIps], announcedBy: "here" };
    this.services.set("shop/web", ServiceState.fromPartial(service));
  }

  readonly run: RunCommand = async (file, args) => {
    const call = [file, ...args].join(" ");
    this.calls.push(call);
    const ip = /(192\.0\.2\.\d+)/.exec(call)?.[1] ?? "";
    if (call.includes("arping -D")) return this.beforeAnswer.then(() => this.#probe(ip));
    if (call.startsWith("ip address replace")) this.has.add(ip);
    if (call.startsWith("ip address del")) this.has.delete(ip);
    if (!call.includes("-json")) return "";
    const local = [...this.has].map((it) => ({ family: "inet", local: it, prefixlen: 32 }));
    const addr_info = [{ family: "inet", local: "192.0.2.7", prefixlen: 24 }, ...local];
    return JSON.stringify([{ ifname: "eth0", address: "02:00:00:00:00:07", mtu: 1_500, addr_info }]);
  };

  #probe(ip: string): string {
    if (this.taken === undefined) throw new CommandFailed("busybox", "", "arping: applet not found");
    if (this.taken)
      throw new CommandFailed("busybox", `Unicast reply from ${ip} [02:00:00:00:00:09] 0.1ms`, "");
    return "";
  }
}

/** Advances the clock, and completes all woken work before the first timer and after each one. */
async function pass(clock: VirtualClock, ms: number): Promise<void> {
  const untilMs = clock.monotonicMs() + ms;
  do await settled();
  while (clock.next(untilMs));
  clock.advance(untilMs - clock.monotonicMs());
}

/** Waits for many more turns of the event loop than a pass over all addresses takes. */
async function settled(): Promise<void> {
  for (let turn = 0; turn < 50; turn++) await new Promise((resolve) => setImmediate(resolve));
}
