import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { test } from "node:test";
import { isDeepStrictEqual } from "node:util";
import { enterOwnNetwork, whyNoOwnNetwork } from "../../hack/lib/own-network.ts";
import { type Clock, systemClock } from "../src/clock.ts";
import { NetworkError, type NetworkErrorCode } from "../src/network/network.ts";
import { runCommand } from "../src/network/run-command.ts";
import { HostUnderTest } from "./host-under-test.ts";
import { makeOutsideHost } from "./outside-host.ts";
import { purge } from "./purge.ts";

const obstacle = whyNoOwnNetwork();
if (obstacle === undefined) enterOwnNetwork();
const skip = obstacle ?? false;

const signal = new AbortController().signal;
const WEB = { container: "web", containerPort: 80, protocol: "TCP" } as const;
let hosts = 0;

test("prepares sandboxes in advance, and the next run uses the spare ones", { skip }, async (t) => {
  const host = await HostUnderTest.setUp(t, hosts++, { poolSize: 3 });
  const first = host.open(hastyClock());
  await first.start([], signal);
  await until(async () => (await recorded(host)) === 3);
  await first.close();
  const prepared = await host.namespaces();
  assert.equal(prepared.length, 3);

  const second = host.open();
  t.after(() => second.close());
  await second.start([], signal);
  const attached = await Promise.all(["a", "b", "c"].map((uid) => second.attach(uid, signal)));
  assert.deepEqual(attached.map((it) => it.namespacePath.slice("/run/netns/".length)).sort(), prepared);
  assert.equal((await second.attach("d", signal)).podUid, "d", "beyond the pool one is made");
  await second.close();

  const third = host.open();
  t.after(() => third.close());
  await third.start([{ podUid: "a", ports: [] }], signal);
  assert.equal(await host.usedSandboxes(), 1, "used ones are not taken for spare");
});

test("a sandbox that could not be recorded is not lost, and a smaller pool keeps fewer", {
  skip,
}, async (t) => {
  const host = await HostUnderTest.setUp(t, hosts++, { poolSize: 2 });
  const first = host.open(hastyClock());
  await first.start([], signal);
  await until(async () => (await recorded(host)) === 2);
  await first.close();

  const smaller = host.open({ ...systemClock, schedule: () => () => undefined }, { poolSize: 1 });
  t.after(() => smaller.close());
  await smaller.start([], signal);
  assert.equal(await host.usedSandboxes(), 1);
  const records = `${host.dataDir}/sandboxes`;
  await rm(records, { recursive: true });
  await assert.rejects(smaller.attach("a", signal), /ENOENT/);
  await mkdir(records);
  await smaller.attach("a", signal);
  await smaller.detach("a", signal);
  assert.equal(await host.usedSandboxes(), 0);
});

test("a damaged record or lease costs no pod its sandbox or its ports", { skip }, async (t) => {
  const host = await HostUnderTest.setUp(t, hosts++);
  const first = host.open();
  await first.start([], signal);
  const sandbox = await first.attach("a", signal);
  const ports = await first.allocatePorts("a", [WEB]);
  await first.publish(sandbox, ports, signal);
  await first.close();
  const namespace = sandbox.namespacePath.slice("/run/netns/".length);
  const process = await host.answer(namespace, "a", 80);
  const record = `${host.dataDir}/sandboxes/${namespace}`;
  const lease = `${host.dataDir}/leases/forage-${host.instance}/${sandbox.address}`;
  const whole = new Map([record, lease].map((path) => [path, readFileSync(path, "utf8")]));
  const published = await host.published();
  const remembered = { podUid: "a", ports, sandbox };
  const forgotten = { podUid: "a", ports: [], desired: [WEB], processes: [process.pid ?? 0] };

  for (const known of [remembered, forgotten]) {
    for (const path of [record, lease]) {
      for (const damage of ["{", "", undefined, ...flippedValues(whole.get(path) ?? "")]) {
        for (const [file, text] of whole) await writeFile(file, text);
        host.damageReports.length = 0;
        if (damage === undefined) await rm(path);
        else await writeFile(path, damage);

        const network = host.open();
        const found = await network.start([known], signal);

        const what = `${path} with ${JSON.stringify(damage)}`;
        assert.equal(await network.check(sandbox), true, what);
        assert.deepEqual(await network.attach("a", signal), sandbox, what);
        assert.deepEqual(await host.published(), published, what);
        assert.deepEqual(found, known === forgotten ? [{ podUid: "a", sandbox, ports }] : [], what);
        assert.equal(host.damageReports.length, 1, `${what}: ${host.damageReports}`);
        assert.equal(readFileSync(lease, "utf8").split("\r\n")[0], namespace, what);
        await network.close();
      }
    }
  }
});

test("restores a lost lease of a prepared sandbox while the agent runs", {
  skip,
}, async (t) => {
  const host = await HostUnderTest.setUp(t, hosts++, { poolSize: 1 });
  const network = host.open(hastyClock());
  t.after(() => network.close());
  await network.start([], signal);
  await until(async () => (await recorded(host)) === 1);
  const leases = await host.leases();
  assert.equal(leases.length, 1);

  await rm(`${host.dataDir}/leases/forage-${host.instance}/${leases[0]}`);

  await until(async () => isDeepStrictEqual(await host.leases(), leases));
  assert.equal(host.damageReports.length, 1);
  const sandbox = await network.attach("a", signal);
  assert.equal(sandbox.address, leases[0]);
});

test("restores a lost lease while pods run, without disconnecting a pod", { skip }, async (t) => {
  const host = await HostUnderTest.setUp(t, hosts++);
  const network = host.open();
  t.after(() => network.close());
  await network.start([], signal);
  const sandbox = await network.attach("a", signal);
  await rm(`${host.dataDir}/leases/forage-${host.instance}/${sandbox.address}`);

  assert.deepEqual(await network.findLost([sandbox]), []);

  assert.deepEqual(await host.leases(), [sandbox.address]);
});

test("restores a flushed ruleset, with the next change or after a while", { skip }, async (t) => {
  const host = await HostUnderTest.setUp(t, hosts++);
  const timers: (() => void)[] = [];
  const schedule: Clock["schedule"] = (_, run) => {
    timers.push(run);
    return () => undefined;
  };
  const network = host.open({ ...systemClock, schedule });
  t.after(() => network.close());
  await network.start([], signal);
  const a = await network.attach("a", signal);
  const b = await network.attach("b", signal);
  await network.publish(a, await network.allocatePorts("a", [WEB]), signal);
  const one = await host.published();
  assert.equal(one.size, 1);

  await runCommand("nft", ["flush", "ruleset"]);
  assert.equal((await host.published()).size, 0);
  for (const run of timers.splice(0)) run();
  await until(async () => (await host.published()).size === 1 && host.warnings.length === 2);
  assert.deepEqual(await host.published(), one);

  await runCommand("nft", ["flush", "ruleset"]);
  await network.publish(b, await network.allocatePorts("b", [WEB]), signal);
  assert.equal((await host.published()).size, 2);
  assert.deepEqual(
    host.warnings.map((it) => it.split(" ")[0]),
    ["host-port-table-put-back", "pod-access-table-put-back", "host-port-table-differs"],
  );
});

test("a network without free addresses reports that, leaves nothing incomplete, and recovers once addresses are free", {
  skip,
}, async (t) => {
  const host = await HostUnderTest.setUp(t, hosts++, { podCidr: "10.64.0.0/28" });
  const network = host.open();
  t.after(() => network.close());
  await network.start([], signal);
  const uids = Array.from({ length: 13 }, (_, index) => `pod-${index}`);
  await Promise.all(uids.map((uid) => network.attach(uid, signal)));
  await assert.rejects(network.attach("one-more", signal), failsWith("NO_ADDRESS_LEFT"));
  assert.equal(await host.usedSandboxes(), 13);
  await network.detach("pod-0", signal);
  await network.attach("one-more", signal);
});

test("rejects a pod network to which the host already has a route", { skip }, async (t) => {
  await makeOutsideHost(t);
  for (const podCidr of ["10.9.0.0/24", "10.9.0.0/16", "10.9.0.128/25"]) {
    const host = await HostUnderTest.setUp(t, hosts++, { podCidr });
    await assert.rejects(
      host.open().start([], signal),
      /overlaps 10\.9\.0\.0\/24.*uplink0.*another pod CIDR/,
    );
  }
});

test("reports missing plugins", { skip }, async (t) => {
  const host = await HostUnderTest.setUp(t, hosts++, { cniDirectory: "/nonexistent" });
  await assert.rejects(host.open().start([], signal), /\/nonexistent\/bridge is missing/);
});

test("pods may listen on low ports and ping without privileges", { skip }, async (t) => {
  const host = await HostUnderTest.setUp(t, hosts++);
  const network = host.open();
  t.after(() => network.close());
  await network.start([], signal);
  const { namespacePath } = await network.attach("a", signal);
  const inPod = ["netns", "exec", namespacePath.slice("/run/netns/".length), "cat"];
  const read = (name: string) => runCommand("ip", [...inPod, `/proc/sys/net/ipv4/${name}`]);
  assert.equal(await read("ip_unprivileged_port_start"), "0");
  assert.equal((await read("ping_group_range")).replaceAll(/\s+/g, " "), "0 2147483647");
});

test("reports a firewall that drops pods' forwarded packets", { skip }, async (t) => {
  const host = await HostUnderTest.setUp(t, hosts++);
  await runCommand("nft", ["-f", "-"], {
    input: "table ip strict {\n chain f {\n type filter hook forward priority 0; policy drop;\n }\n}\n",
  });
  t.after(() => runCommand("nft", ["delete", "table", "ip", "strict"]));
  const network = host.open();
  t.after(() => network.close());
  await network.start([], signal);
  assert.deepEqual(host.warnings, ['firewall-drops-forwarded-traffic {"tables":["ip strict"]}']);
});

test("purge removes everything of a dead agent's instance, and nothing of others", { skip }, async (t) => {
  const [host, other] = [
    await HostUnderTest.setUp(t, hosts++),
    await HostUnderTest.setUp(t, hosts++, { podCidr: "10.65.0.0/16" }),
  ];
  await writeFile("/proc/sys/net/ipv4/ip_forward", "0");
  for (const it of [host, other]) {
    const network = it.open();
    t.after(() => network.close());
    await network.start([], signal);
    const sandbox = await network.attach("a", signal);
    await network.publish(sandbox, await network.allocatePorts("a", [WEB]), signal);
  }
  const options = { instance: host.instance, dataDir: host.dataDir, restoreSysctls: true, run: runCommand };
  const report = await purge(options);
  assert.deepEqual(report, {
    namespaces: 1,
    links: 2,
    sysctls: [{ name: "net/ipv4/ip_forward", before: "0", restored: true }],
  });
  assert.equal((await readFile("/proc/sys/net/ipv4/ip_forward", "utf8")).trim(), "0");
  assert.deepEqual(await host.namespaces(), []);
  assert.deepEqual(await readdir(dirname(host.dataDir)), []);
  const state = (await runCommand("ip", ["link", "show"])) + (await runCommand("nft", ["list", "ruleset"]));
  assert.ok(!state.includes(host.instance), state);
  assert.equal((await other.namespaces()).length, 1);
  assert.equal((await other.published()).size, 1);
  assert.deepEqual(await purge(options), { namespaces: 0, links: 0, sysctls: [] }, "once more is fine");
});

/** Returns variants of the text, each with one bit flipped in the last letter of one word. */
function flippedValues(text: string): readonly string[] {
  return [...text.matchAll(/\w(?=\W|$)/g)].map(
    ({ 0: letter, index }) =>
      text.slice(0, index) + String.fromCharCode(letter.charCodeAt(0) ^ 1) + text.slice(index + 1),
  );
}

/** A clock whose timers fire at once. */
function hastyClock(): Clock {
  return { ...systemClock, schedule: (_, run) => systemClock.schedule(1, run) };
}

async function recorded(host: HostUnderTest): Promise<number> {
  return (await readdir(`${host.dataDir}/sandboxes`)).filter((name) => !name.endsWith(".tmp")).length;
}

async function until(holds: () => Promise<boolean>): Promise<void> {
  const end = performance.now() + 90_000;
  while (!(await holds())) {
    if (performance.now() > end) assert.fail("waited 90 s in vain");
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

function failsWith(code: NetworkErrorCode): (error: unknown) => boolean {
  return (error) => error instanceof NetworkError && error.code === code;
}
