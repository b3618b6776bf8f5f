import assert from "node:assert/strict";
import { existsSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import {
  type TaskConfig,
  type TaskHandle,
  TaskHandle as TaskHandleMessage,
} from "@forage/proto/plugins/drivers/proto/driver";
import { until } from "../until.ts";
import { DriverUnderTest, PipeReader } from "./driver-under-test.ts";

const LIMIT = { timeout: 120_000 };
const UNTIL_GO = {
  command: "sh",
  args: ["-c", "echo begun; while [ ! -e /local/go ]; do sleep 0.05; done; echo over; exit 7"],
};

let driver: DriverUnderTest;
before(async () => {
  driver = await DriverUnderTest.start();
}, LIMIT);
after(() => driver?.close(), LIMIT);

const letGo = (task: TaskConfig) => writeFileSync(join(task.allocDir, "web/local/go"), "");

/** Returns the handle as Nomad stores it: without driver configuration and task id. */
const stored = (handle: TaskHandle): { taskId: string; handle: TaskHandle } => {
  const copy = TaskHandleMessage.decode(TaskHandleMessage.encode(handle).finish());
  if (copy.config) copy.config.msgpackDriverConfig = Buffer.alloc(0);
  return { taskId: "", handle: copy };
};

async function containersOf(task: TaskConfig): Promise<readonly string[]> {
  const { stdout } = await driver.host.nerdctl(["ps", "-a", "--format", "{{.Names}}"]);
  return stdout.split("\n").filter((name) => name.includes(task.id.slice(-8)));
}

test(
  "tasks outlive a killed driver, their output continues, and the next driver adopts them",
  LIMIT,
  async () => {
    const running = driver.task(UNTIL_GO);
    const ended = driver.task(UNTIL_GO);
    const stdout = new PipeReader(running.stdoutPath);
    const { handle } = await driver.startTask(running);
    const { handle: handleOfEnded } = await driver.startTask(ended);
    await driver.kill();
    letGo(ended);
    await driver.launch();
    await assert.rejects(driver.call("inspectTask", { taskId: running.id }), { code: 2 });
    await driver.call("recoverTask", stored(handle));
    // Recovering a known task has no effect.
    await driver.call("recoverTask", stored(handle));
    const { task: seen } = await driver.call("inspectTask", { taskId: running.id });
    assert.deepEqual([seen?.id, seen?.name], [running.id, "web"]);
    await assert.rejects(driver.call("startTask", { task: running }), { code: 6 });
    const { response } = driver.wait(running.id);
    letGo(running);
    assert.equal((await response).result?.exitCode, 7);
    assert.equal(stdout.text, "begun\nover\n");
    // A task that ended in the meantime has its real result.
    await until("the other task has ended", async () => (await containerState(ended)) === "exited");
    await driver.call("recoverTask", stored(handleOfEnded));
    assert.equal((await driver.wait(ended.id).response).result?.exitCode, 7);
    for (const { id } of [running, ended]) await driver.call("destroyTask", { taskId: id, force: false });
    assert.deepEqual([...(await containersOf(running)), ...(await containersOf(ended))], []);
  },
);

async function containerState(task: TaskConfig): Promise<string> {
  const [name = ""] = await containersOf(task);
  return (await driver.host.nerdctl(["inspect", "--format", "{{.State.Status}}", name])).stdout.trim();
}

test(
  "a task of an earlier boot, a removed one and an unreadable handle are refused at once",
  LIMIT,
  async () => {
    const lost = driver.task(UNTIL_GO);
    const removed = driver.task(UNTIL_GO);
    const { handle } = await driver.startTask(lost);
    const { handle: handleOfRemoved } = await driver.startTask(removed);
    await driver.kill();
    driver.reboot("second");
    await driver.launch();
    await assert.rejects(driver.call("recoverTask", stored(handle)), { code: 9, details: /rebooted/ });
    // Nomad then destroys the task by force.
    await driver.call("destroyTask", { taskId: lost.id, force: true });
    assert.deepEqual(await containersOf(lost), []);
    await driver.kill();
    driver.reboot("first");
    await driver.host.nerdctl(["rm", "-f", ...(await containersOf(removed))]);
    await driver.launch();
    await assert.rejects(driver.call("recoverTask", stored(handleOfRemoved)), {
      code: 9,
      details: /removed/,
    });
    await driver.call("destroyTask", { taskId: removed.id, force: true });
    for (const change of [
      { version: 9 },
      { driverState: Buffer.from("{}") },
      { driverState: Buffer.from("nonsense") },
    ])
      await assert.rejects(driver.call("recoverTask", { taskId: "", handle: { ...handle, ...change } }), {
        code: 9,
      });
  },
);

test("removes a container whose start the driver did not survive", LIMIT, async () => {
  const task = driver.task(UNTIL_GO);
  await driver.startTask(task);
  await driver.kill();
  // Simulates a driver that was killed before it responded.
  const starts = join(driver.options.runDir, "starts");
  const [name = ""] = await containersOf(task);
  writeFileSync(join(starts, name), "");
  await driver.launch();
  await until(
    "nothing is left",
    async () => (await containersOf(task)).length === 0 && readdirSync(starts).length === 0,
  );
});

test(
  "50 tasks start at the same time, each with its own result, and nothing is left of them",
  LIMIT,
  async () => {
    const tasks = Array.from({ length: 50 }, (_, i) =>
      driver.task({
        command: "sh",
        args: ["-c", `echo ${i}; while [ ! -e /local/go ]; do sleep 0.2; done; exit ${i}`],
      }),
    );
    const readers = tasks.map((task) => new PipeReader(task.stdoutPath));
    await Promise.all(tasks.map((task) => driver.startTask(task)));
    const waits = tasks.map(({ id }) => driver.wait(id).response);
    for (const task of tasks) letGo(task);
    const codes = (await Promise.all(waits)).map(({ result }) => result?.exitCode);
    assert.deepEqual(
      codes,
      tasks.map((_, i) => i),
    );
    assert.deepEqual(
      readers.map(({ text }) => text),
      tasks.map((_, i) => `${i}\n`),
    );
    for (const reader of readers) reader.close();
    await Promise.all(tasks.map(({ id: taskId }) => driver.call("destroyTask", { taskId, force: false })));
    assert.equal((await driver.host.nerdctl(["ps", "-aq"])).stdout, "");
    for (const dir of ["tasks", "starts", "nerdctl/containers"])
      assert.deepEqual(readdirSync(join(driver.options.runDir, dir)), [], dir);
    assert.equal(existsSync(join(driver.options.dataDir, "networks")), false);
  },
);
