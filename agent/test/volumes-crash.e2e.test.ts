import assert from "node:assert/strict";
import { fork } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { randomOf } from "@forage/common/random";
import { VirtualClock } from "@forage/common/virtual-clock";
import { run } from "../../hack/lib/run.ts";
import { enterOwnMounts, whyNoOwnMounts } from "./own-mounts.ts";
import { aMount, MIB, VolumeHost } from "./volume-host.ts";
import { busyPods } from "./volumes-work.ts";

const obstacle = whyNoOwnMounts();
const parent = obstacle === undefined ? enterOwnMounts() : "";
const options = { skip: obstacle ?? false, timeout: 300_000 };
const signal = new AbortController().signal;
const CRASHES = 12;
// A round of the worker takes about this long.
const ROUND_MS = 1_500;

test(
  "after a kill at any moment, the next agent keeps the required files and removes all others",
  options,
  async (t) => {
    const host = await VolumeHost.setUp(t, parent);
    const random = randomOf(7).next;
    const [kept] = busyPods(0);
    assert.ok(kept);
    const first = await host.start();
    await first.prepare(kept.pod, signal);
    const keeping = ["plain", "limited", "claim"];
    for (const bind of await first.binds(
      "kept",
      "web",
      keeping.map((name) => aMount(name)),
      signal,
    )) {
      writeFileSync(join(bind.source, "kept"), "");
    }
    for (let crash = 1; crash <= CRASHES; crash += 1) {
      const worker = fork(join(import.meta.dirname, "volumes-worker.ts"), [host.directory], { execArgv: [] });
      await once(worker, "message");
      await pause(random() * ROUND_MS);
      worker.kill("SIGKILL");
      await once(worker, "exit");
      if (random() < 0.3) await host.reboot();

      const volumes = await host.start(["kept"]);
      await volumes.prepare(kept.pod, signal);
      const binds = await volumes.binds(
        "kept",
        "web",
        [...keeping, "secret"].map((name) => aMount(name)),
        signal,
      );
      for (const { source } of binds.slice(0, 3))
        assert.ok(existsSync(join(source, "kept")), `${crash} ${source}`);
      assert.equal(readFileSync(join(binds[3]?.source ?? "", "password"), "utf8"), "0");
      const others = host.remains().filter((it) => !it.startsWith("/dev/") && !/\/kept(\/|$)/.test(it));
      const claim = join(host.dataDir, "claims/shop/of-k/mnt");
      assert.deepEqual(
        others.filter((it) => it !== claim),
        [],
        `crash ${crash}`,
      );
      const devices = await host.settledDevices(2);
      assert.equal(devices.length, 2, `crash ${crash}: ${devices}`);
      assert.deepEqual(
        (await volumes.claims()).filter(({ users }) => users.some((uid) => uid !== "kept")),
        [],
      );
      await volumes.close();
    }
    await (await host.start(["kept"])).release("kept", signal);
    assert.deepEqual(await host.settled(), []);
  },
);

test("frees a device that a killed agent's program attaches too late", options, async (t) => {
  const host = await VolumeHost.setUp(t, parent);
  const clock = new VirtualClock();
  await host.start([], clock);
  const file = join(host.dataDir, "disk", "late.img");
  writeFileSync(file, Buffer.alloc(MIB));
  await run("losetup", ["--find", "--", file]);
  assert.equal(host.devices().length, 1);
  clock.advance(5_000);
  rmSync(file);
  clock.advance(10_000);
  assert.deepEqual(await host.settledDevices(0), []);
});

test("frees a device that a killed agent's program attaches to an unused claim", options, async (t) => {
  const host = await VolumeHost.setUp(t, parent);
  const [kept] = busyPods(0);
  assert.ok(kept);
  const clock = new VirtualClock();
  const volumes = await host.start([], clock);
  await volumes.prepare(kept.pod, signal);
  await volumes.release("kept", signal);
  assert.deepEqual(await host.settledDevices(0), []);
  await run("losetup", ["--find", "--", join(host.dataDir, "claims/shop/of-k/data.img")]);
  assert.equal(host.devices().length, 1);
  clock.advance(15_000);
  assert.deepEqual(await host.settledDevices(0), []);
});

test(
  "the file and the device with which a killed agent tried loop devices are removed",
  options,
  async (t) => {
    const host = await VolumeHost.setUp(t, parent);
    const first = await host.start();
    const file = join(host.dataDir, "loop-trial-5f0c");
    writeFileSync(file, Buffer.alloc(MIB));
    await run("losetup", ["--find", "--", file]);
    await first.close();
    await host.start();
    assert.equal(existsSync(file), false);
    assert.deepEqual(await host.settledDevices(0), []);
  },
);
