import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { TaskState } from "@forage/proto/plugins/drivers/proto/driver";
import { until } from "../until.ts";
import { DriverUnderTest, PipeReader } from "./driver-under-test.ts";

const LIMIT = { timeout: 120_000 };
const sh = (script: string) => ({ command: "sh", args: ["-c", script] });

let driver: DriverUnderTest;
before(async () => {
  driver = await DriverUnderTest.start();
}, LIMIT);
after(() => driver?.close(), LIMIT);

test("a task starts, writes to Nomad's pipes, is stopped and leaves nothing", LIMIT, async () => {
  const task = driver.task(sh("echo out; echo err >&2; trap 'exit 3' TERM; while :; do sleep 0.05; done"));
  const [stdout, stderr] = [new PipeReader(task.stdoutPath), new PipeReader(task.stderrPath)];
  await driver.startTask(task);
  await until("the output arrives", () => stdout.text === "out\n" && stderr.text === "err\n");
  const { task: seen } = await driver.call("inspectTask", { taskId: task.id });
  assert.equal(seen?.state, TaskState.RUNNING);
  assert.equal(seen?.completedAt?.seconds, -62_135_596_800n);
  const { response } = driver.wait(task.id);
  await driver.call("stopTask", { taskId: task.id, timeout: { seconds: 30n, nanos: 0 }, signal: "SIGTERM" });
  assert.deepEqual(await response, { result: { exitCode: 3, signal: 0, oomKilled: false }, err: "" });
  assert.equal((await driver.call("inspectTask", { taskId: task.id })).task?.state, TaskState.EXITED);
  await driver.call("destroyTask", { taskId: task.id, force: false });
  assert.equal((await driver.host.nerdctl(["ps", "-aq"])).stdout, "");
  await assert.rejects(driver.call("inspectTask", { taskId: task.id }), {
    code: 2,
    details: "task not found for given id",
  });
});
