import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { TaskConfig } from "@forage/proto/plugins/drivers/proto/driver";
import { taskOptions } from "../../../test/driver/driver-options.ts";
import { until } from "../../../test/until.ts";
import { systemClock } from "../../clock.ts";
import { FakeNetwork, FakeNetworkHost } from "../../network/fake.ts";
import { FakeRuntime } from "../../runtime/fake.ts";
import { RuntimeError } from "../../runtime/runtime.ts";
import type { DriverOptions } from "../config/driver-options.ts";
import { DriverError } from "../driver-error.ts";
import { ExitWatch } from "./exit-watch.ts";
import type { Processes } from "./processes.ts";
import { RuntimeTaskDriver } from "./task-driver.ts";
import { TaskEvents } from "./task-events.ts";
import { TaskImages } from "./task-images.ts";
import { TaskNetworks } from "./task-networks.ts";

const { signal } = new AbortController();
const IMAGE = "localhost/app:1";
const OPTIONS: DriverOptions = {
  ...{ enabled: true, containerdAddress: "", containerdNamespace: "", nerdctl: "", cniBinDir: "" },
  ...{
    dataDir: "/nonexistent",
    runDir: "/nonexistent",
    allowPrivileged: false,
    allowCaps: [],
    allowDevices: [],
  },
  ...{ allowRuntimes: [], volumes: { enabled: false }, imagePullTimeoutMs: 1_000, extraLabels: [] },
  ...{ disableLogCollection: false, gc: { container: true, image: false, imageDelayMs: 0 } },
};

function aDriver(t: TestContext, gc: Partial<DriverOptions["gc"]> = {}) {
  const driverOptions = { ...OPTIONS, gc: { ...OPTIONS.gc, ...gc } };
  const dir = mkdtempSync(join(tmpdir(), "forage-tasks-"));
  const clock = systemClock;
  const runtime = new FakeRuntime({ clock, images: [IMAGE] });

  const processes: Processes = {
    bootId: () => "boot",
    identify: (pid) =>
      runtime.containers.some((it) => it.pid === pid) ? { pid, startTicks: 1, bootId: "boot" } : undefined,
  };
  const log = () => undefined;
  const networks = new TaskNetworks({
    dir: join(dir, "networks"),
    open: () => new FakeNetwork(new FakeNetworkHost()),
    noteDamage: () => undefined,
  });
  const dependencies = {
    ...{
      instance: "nomad",
      options: driverOptions,
      runtime,
      networks,
      processes,
      clock,
      log,
      coreMhz: 1_000,
      cores: 2,
      host: { appArmor: false, seLinux: false, cgroupVersion: 1 as const, messageQueues: true },
    },
    images: new TaskImages({ runtime, options: driverOptions, clock, log }),
    helpers: { close: async () => {} },
    exits: new ExitWatch({ runtime, processes, clock, log }),
    events: new TaskEvents(() => clock.nowMs()),
    ...{ filesDir: join(dir, "tasks"), startsDir: join(dir, "starts") },
  };
  const driver = new RuntimeTaskDriver(dependencies);
  t.after(async () => {
    await driver.close();
    rmSync(dir, { recursive: true });
  });
  let started = 0;
  const task = () => {
    started += 1;
    const hex = started.toString(16).padStart(8, "0");
    return TaskConfig.fromPartial({ id: `alloc/web/${hex}`, name: "web", allocId: "alloc" });
  };
  const list = (name: string) => (existsSync(join(dir, name)) ? readdirSync(join(dir, name)) : []);
  const left = () => ["tasks", "starts", "networks", "networks-copies"].flatMap(list);
  return { driver, runtime, task, left };
}

const options = taskOptions({ image: IMAGE, networkMode: "none" });
const own = taskOptions({ image: IMAGE, networkMode: "bridge" });

test("a failed start leaves nothing behind, and only temporary failures are recoverable", async (t) => {
  const { driver, runtime, task, left } = aDriver(t);
  for (const [method, retryable, afterEffect] of [
    ["run", true, false],
    ["run", true, true],
    ["inspect", false, false],
    ["hasImage", true, false],
  ] as const) {
    runtime.faults.fail(method, new RuntimeError("UNAVAILABLE", "boom", { retryable }), { afterEffect });
    await assert.rejects(driver.start(task(), own, signal), (error) => {
      assert.ok(error instanceof DriverError);
      assert.equal(error.recoverable, retryable || undefined, `${method}: ${error.message}`);
      return true;
    });
    assert.deepEqual([runtime.containers, left()], [[], []], method);
  }
});

test("a start that its caller cancels leaves nothing behind", async (t) => {
  const { driver, runtime, task, left } = aDriver(t);
  const gone = new AbortController();
  runtime.registry.set("localhost/slow:1", "hangs");
  const start = driver.start(task(), { ...own, image: "localhost/slow:1" }, gone.signal);
  await until("the pull has begun", () => runtime.faults.calls.some(({ method }) => method === "pull"));
  gone.abort();
  await assert.rejects(start, { code: "CANCELLED" });
  assert.deepEqual([runtime.containers, left()], [[], []]);
});

test("a pull that takes too long names its setting and is recoverable", async (t) => {
  const { driver, runtime, task } = aDriver(t);
  runtime.registry.set("localhost/slow:1", "hangs");
  const slow = { ...options, image: "localhost/slow:1", imagePullTimeoutMs: 20 };
  await assert.rejects(driver.start(task(), slow, signal), {
    recoverable: true,
    message: /image_pull_timeout/,
  });
});

test("a broken event stream delays an exit but does not lose it", async (t) => {
  const { driver, runtime, task } = aDriver(t);
  const config = task();
  await driver.start(config, options, signal);
  runtime.breakEvents();
  const [container] = runtime.containers;
  runtime.exit(container?.id ?? "", 5);
  assert.equal((await driver.wait(config.id, signal)).result?.exitCode, 5);
});

test("a container that another program removed ends its task with the reason", async (t) => {
  const { driver, runtime, task } = aDriver(t);
  const config = task();
  await driver.start(config, options, signal);
  runtime.loseAll();
  assert.match((await driver.wait(config.id, signal)).err, /removed the task's container/);
  await driver.destroy(config.id, false);
});

test("a failed destroy can be repeated, and an unused image is removed after the last task", async (t) => {
  const { driver, runtime, task, left } = aDriver(t, { image: true });
  const config = task();
  await driver.start(config, own, signal);
  runtime.faults.fail("remove", new RuntimeError("UNAVAILABLE", "boom", { retryable: true }));
  await assert.rejects(driver.destroy(config.id, true), DriverError);
  assert.equal((await driver.inspect(config.id)).task?.id, config.id);
  await Promise.all([driver.destroy(config.id, true), driver.destroy(config.id, true)]);
  assert.deepEqual([runtime.containers, left()], [[], []]);
  await assert.rejects(driver.inspect(config.id), { code: "TASK_NOT_FOUND" });
  await until("the image is removed", () => runtime.images.size === 0);
});

test("a forced destroy ends a start in progress", async (t) => {
  const { driver, runtime, task, left } = aDriver(t);
  const config = task();
  runtime.registry.set("localhost/slow:1", "hangs");
  const start = driver.start(config, { ...own, image: "localhost/slow:1" }, signal);
  start.catch(() => undefined);
  await until("the pull has begun", () => runtime.faults.calls.some(({ method }) => method === "pull"));
  await assert.rejects(driver.destroy(config.id, false), { code: "FAILED_PRECONDITION" });
  await driver.destroy(config.id, true);
  await assert.rejects(start);
  assert.deepEqual([runtime.containers, left()], [[], []]);
});

test("a stopped task keeps its result while its container is kept for inspection", async (t) => {
  const { driver, runtime, task } = aDriver(t, { container: false });
  const config = task();
  await driver.start(config, options, signal);
  await driver.stop(config.id, { signalName: "SIGINT", timeoutMs: 1_000 });
  assert.equal((await driver.wait(config.id, signal)).result?.signal, 2);
  await driver.destroy(config.id, false);
  assert.deepEqual(
    runtime.containers.map(({ state }) => state),
    ["exited"],
  );
});

test("every subscriber receives events until it unsubscribes", async () => {
  const events = new TaskEvents(() => 1_000);
  const gone = new AbortController();
  const reader = events.subscribe(gone.signal);
  const first = reader.next();
  events.publish({ id: "i", allocId: "a", name: "n" }, "hello", { key: "value" });
  const { value } = await first;
  assert.deepEqual([value?.taskId, value?.message, value?.annotations], ["i", "hello", { key: "value" }]);
  const end = reader.next();
  gone.abort();
  assert.equal((await end).done, true);
});
