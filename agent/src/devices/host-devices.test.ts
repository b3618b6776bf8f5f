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
const ONE = { container: "main", init: false, wanted: { [GPU]: 1 } };

test("each pod gets a unit of its own, and the same one again", async (t) => {
  const devices = await aHost(t).open();
  const [a, b] = await Promise.all([devices.take("a", ONE), devices.take("b", ONE)]);
  assert.deepEqual(paths(a), ["/dev/a"]);
  assert.deepEqual(paths(b), ["/dev/b", "/dev/shared"]);
  assert.deepEqual(await devices.take("a", ONE), a);
});

test("a device path that several units share is given once", async (t) => {
  const devices = await aHost(t).open();
  const all = await devices.take("a", { ...ONE, wanted: { [GPU]: 3 } });
  assert.deepEqual(paths(all), ["/dev/a", "/dev/b", "/dev/shared", "/dev/c"]);
});

test("a container without device requests gets no devices", async (t) => {
  const devices = await aHost(t).open();
  assert.deepEqual(await devices.take("a", { ...ONE, wanted: {} }), []);
});

test("units come back with the pod's end only", async (t) => {
  const devices = await aHost(t).open();
  await devices.take("a", { ...ONE, wanted: { [GPU]: 3 } });
  await assert.rejects(devices.take("b", ONE), DeviceError);
  await devices.release("a");
  await devices.release("a");
  assert.deepEqual(paths(await devices.take("b", ONE)), ["/dev/a"]);
});

test("a waiting pod is notified only when units become free", async (t) => {
  const host = aHost(t);
  const devices = await host.open();
  let told = 0;
  devices.onFreed(() => {
    told += 1;
  });
  await devices.take("a", ONE);
  await devices.release("b");
  assert.equal(told, 0);
  await devices.release("a");
  assert.equal(told, 1);
  host.absent.add("/dev/a");
  await devices.take("b", ONE);
  assert.equal(told, 1);
  host.absent.clear();
  await devices.take("b", ONE);
  assert.equal(told, 2);
});

test("the next agent restores all holdings, and frees those of unknown pods", async (t) => {
  const host = aHost(t);
  const devices = await host.open();
  await devices.take("a", ONE);
  await devices.take("b", ONE);
  const next = await host.open(["b"]);
  assert.deepEqual(paths(await next.take("b", ONE)), ["/dev/b", "/dev/shared"]);
  assert.deepEqual(paths(await next.take("c", ONE)), ["/dev/a"]);
});

for (const [how, damage] of [
  ["flipped", (bytes: Buffer) => bytes.with(bytes.length >> 1, (bytes.at(bytes.length >> 1) ?? 0) ^ 1)],
  ["emptied", () => Buffer.alloc(0)],
  ["of another form", () => Buffer.from('[{"container":1}]')],
] as const) {
  test(`a record that is ${how} frees no unit, until its pod is gone`, async (t) => {
    const host = aHost(t);
    await (await host.open()).take("a", ONE);
    const directory = await host.directory;
    const record = join(directory, "a");
    await writeFile(record, damage(await readFile(record)));
    const next = await host.open(["a"]);
    assert.deepEqual(host.damaged, ["a"]);
    await assert.rejects(next.take("b", ONE), /the record of pod a's devices is damaged/);
    // Its own containers go on, and the next agent still does not know what the others have.
    await next.take("a", ONE);
    const third = await host.open(["a"]);
    await assert.rejects(third.take("b", ONE), DeviceError);
    await third.release("a");
    assert.deepEqual(paths(await third.take("b", ONE)), ["/dev/a"]);
  });
}

test("a missing record of a pod with running containers frees no unit until the pod is gone", async (t) => {
  const host = aHost(t);
  await (await host.open()).take("a", ONE);
  await rm(join(await host.directory, "a"));
  const next = await host.open(["a"], ["a"]);
  assert.deepEqual(host.damaged, ["a"]);
  await assert.rejects(next.take("b", ONE), /the record of pod a's devices is damaged or missing/);
  await next.release("a");
  assert.deepEqual(paths(await next.take("b", ONE)), ["/dev/a"]);
});

test("records of unknown pods and unfinished writes are removed, and older ones read", async (t) => {
  const host = aHost(t);
  const directory = await host.directory;
  await (await host.open()).take("a", ONE);
  const [older = ""] = (await readFile(join(directory, "a"), "utf8")).split("\n");
  await writeFile(join(directory, "a"), older);
  await writeFile(join(directory, "b"), "{");
  await writeFile(join(directory, "a.tmp"), "[]");
  const devices = await host.open(["a"]);
  assert.deepEqual(await readdir(directory), ["a"]);
  assert.deepEqual(host.damaged, []);
  assert.deepEqual(paths(await devices.take("b", ONE)), ["/dev/b", "/dev/shared"]);
});

test("devices that appear or vanish change the usable amount, and the change is published", async (t) => {
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

test("a host without devices has none to lend", async () => {
  assert.deepEqual(await noDevices.take("a", { ...ONE, wanted: {} }), []);
  await assert.rejects(noDevices.take("a", ONE), /this host has no example\.com\/gpu/);
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
