import assert from "node:assert/strict";
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { type TestContext, test } from "node:test";
import { VirtualClock } from "@forage/common/virtual-clock";
import { DeviceError, noDevices } from "./devices.ts";
import { HostDevices } from "./host-devices.ts";
import { parsePool } from "./parse-pool.ts";

const POOL = parsePool({
  "example.com/gpu": ["/dev/a", ["/dev/b", "/dev/shared"], ["/dev/c", "/dev/shared"]],
});
const GPU = "example.com/gpu";
const ONE = { container: "main", init: false, desired: { [GPU]: 1 } };

test("each pod gets its own unit, and keeps it", async (t) => {
  const devices = await aHost(t).open();
  const [a, b] = await Promise.all([devices.allocate("a", ONE), devices.allocate("b", ONE)]);
  assert.deepEqual(paths(a), ["/dev/a"]);
  assert.deepEqual(paths(b), ["/dev/b", "/dev/shared"]);
  assert.deepEqual(await devices.allocate("a", ONE), a);
});

test("passes a device path that several units share only once", async (t) => {
  const devices = await aHost(t).open();
  const all = await devices.allocate("a", { ...ONE, desired: { [GPU]: 3 } });
  assert.deepEqual(paths(all), ["/dev/a", "/dev/b", "/dev/shared", "/dev/c"]);
});

test("a container without device requests gets no devices", async (t) => {
  const devices = await aHost(t).open();
  assert.deepEqual(await devices.allocate("a", { ...ONE, desired: {} }), []);
});

test("units are released only at the pod's end", async (t) => {
  const devices = await aHost(t).open();
  await devices.allocate("a", { ...ONE, desired: { [GPU]: 3 } });
  await assert.rejects(devices.allocate("b", ONE), DeviceError);
  await devices.release("a");
  await devices.release("a");
  assert.deepEqual(paths(await devices.allocate("b", ONE)), ["/dev/a"]);
});

test("a waiting pod is notified only when units become free", async (t) => {
  const host = aHost(t);
  const devices = await host.open();
  let calls = 0;
  devices.onFreed(() => {
    calls += 1;
  });
  await devices.allocate("a", ONE);
  await devices.release("b");
  assert.equal(calls, 0);
  await devices.release("a");
  assert.equal(calls, 1);
  host.absent.add("/dev/a");
  await devices.allocate("b", ONE);
  assert.equal(calls, 1);
  host.absent.clear();
  await devices.allocate("b", ONE);
  assert.equal(calls, 2);
});

test("the next agent restores all assignments, and frees those of unknown pods", async (t) => {
  const host = aHost(t);
  const devices = await host.open();
  await devices.allocate("a", ONE);
  await devices.allocate("b", ONE);
  const next = await host.open(["b"]);
  assert.deepEqual(paths(await next.allocate("b", ONE)), ["/dev/b", "/dev/shared"]);
  assert.deepEqual(paths(await next.allocate("c", ONE)), ["/dev/a"]);
});

for (const [how, damage] of [
  ["flipped", (bytes: Buffer) => bytes.with(bytes.length >> 1, (bytes.at(bytes.length >> 1) ?? 0) ^ 1)],
  ["emptied", () => Buffer.alloc(0)],
  ["of another form", () => Buffer.from('[{"container":1}]')],
] as const) {
  test(`a record that is ${how} frees no unit until its pod is removed`, async (t) => {
    const host = aHost(t);
    await (await host.open()).allocate("a", ONE);
    const directory = await host.directory;
    const record = join(directory, "a");
    await writeFile(record, damage(await readFile(record)));
    const next = await host.open(["a"]);
    assert.deepEqual(host.damaged, ["a"]);
    await assert.rejects(next.allocate("b", ONE), /the record of pod a's devices is damaged/);
    // The pod's own containers continue, but the next agent still does not know which units the others have.
    await next.allocate("a", ONE);
    const third = await host.open(["a"]);
    await assert.rejects(third.allocate("b", ONE), DeviceError);
    await third.release("a");
    assert.deepEqual(paths(await third.allocate("b", ONE)), ["/dev/a"]);
  });
}

test("a missing record of a pod with running containers frees no unit until the pod is removed", async (t) => {
  const host = aHost(t);
  await (await host.open()).allocate("a", ONE);
  await rm(join(await host.directory, "a"));
  const next = await host.open(["a"], ["a"]);
  assert.deepEqual(host.damaged, ["a"]);
  await assert.rejects(next.allocate("b", ONE), /the record of pod a's devices is damaged or missing/);
  await next.release("a");
  assert.deepEqual(paths(await next.allocate("b", ONE)), ["/dev/a"]);
});

test("removes records of unknown pods and unfinished writes, and reads records of older agents", async (t) => {
  const host = aHost(t);
  const directory = await host.directory;
  await (await host.open()).allocate("a", ONE);
  const [older = ""] = (await readFile(join(directory, "a"), "utf8")).split("\n");
  await writeFile(join(directory, "a"), older);
  await writeFile(join(directory, "b"), "{");
  await writeFile(join(directory, "a.tmp"), "[]");
  const devices = await host.open(["a"]);
  assert.deepEqual(await readdir(directory), ["a"]);
  assert.deepEqual(host.damaged, []);
  assert.deepEqual(paths(await devices.allocate("b", ONE)), ["/dev/b", "/dev/shared"]);
});

test("publishes a change of the usable amount when devices appear or disappear", async (t) => {
  const host = aHost(t);
  const devices = await host.open();
  assert.deepEqual(devices.amounts(), { capacity: { [GPU]: 3 }, allocatable: { [GPU]: 3 } });
  const clock = new VirtualClock();
  const stopping = new AbortController();
  let changes = 0;
  const watching = devices.watch(clock, stopping.signal, () => {
    changes += 1;
  });
  host.absent.add("/dev/shared");
  await clock.run(120_000);
  assert.deepEqual(devices.amounts(), { capacity: { [GPU]: 3 }, allocatable: { [GPU]: 1 } });
  assert.equal(changes, 1);
  stopping.abort();
  await watching;
});

test("a host without devices assigns none", async () => {
  assert.deepEqual(await noDevices.allocate("a", { ...ONE, desired: {} }), []);
  await assert.rejects(noDevices.allocate("a", ONE), /this host has no example\.com\/gpu/);
});

function aHost(t: TestContext) {
  const directory = mkdtemp(join(tmpdir(), "forage-devices-"));
  t.after(async () => rm(await directory, { recursive: true, force: true }));
  const absent = new Set<string>();
  const damaged: string[] = [];
  return {
    directory,
    absent,
    damaged,
    async open(known: readonly string[] = [], using: readonly string[] = []) {
      const isDevice = async (path: string) => !absent.has(path);
      const devices = new HostDevices({
        ...{ pool: POOL, directory: await directory, isDevice },
        noteDamage: (path) => damaged.push(basename(path)),
      });
      await devices.recover(new Set(known), new Set(using));
      return devices;
    },
  };
}

function paths(devices: readonly { readonly hostPath: string }[]): readonly string[] {
  return devices.map((it) => it.hostPath);
}
