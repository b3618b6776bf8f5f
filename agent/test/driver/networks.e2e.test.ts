import assert from "node:assert/strict";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import {
  NetworkIsolationSpec_NetworkIsolationMode as Mode,
  TaskConfig,
} from "@forage/proto/plugins/drivers/proto/driver";
import { driverInstance } from "../../src/driver/tasks/open-task-driver.ts";
import { runCommand } from "../../src/network/run-command.ts";
import { purge } from "../purge.ts";
import { until } from "../until.ts";
import { DriverUnderTest } from "./driver-under-test.ts";

const LIMIT = { timeout: 120_000 };
const HTTPD = { command: "sh", args: ["-c", "echo ok >/tmp/index.html; exec httpd -f -p 8080 -h /tmp"] };
const HOST_PORT = 28_431;
const ADDRESS_PORT = 28_432;

let driver: DriverUnderTest;
before(async () => {
  driver = await DriverUnderTest.start();
}, LIMIT);
after(async () => {
  await driver?.kill();
  const { dataDir } = driver.options;
  const dir = join(dataDir, "network");
  await purge({ instance: driverInstance(dataDir), dataDir: dir, restoreSysctls: false, run: runCommand });
  await driver.close();
}, LIMIT);

const namespaces = () =>
  readdirSync("/run/netns").filter((name) =>
    name.startsWith(`forage-${driverInstance(driver.options.dataDir)}-`),
  );

async function answers(url: string): Promise<boolean> {
  const response = await fetch(url, { signal: AbortSignal.timeout(2_000) }).catch(() => undefined);
  return (await response?.text()) === "ok\n";
}

test(
  "a task with a network of its own has an address and its ports, also after the driver was killed",
  LIMIT,
  async () => {
    const { resources } = TaskConfig.fromPartial({
      resources: {
        ports: [
          { label: "http", value: HOST_PORT, to: 8080 },
          { label: "admin", value: ADDRESS_PORT, to: 8080, hostIp: "127.0.0.2" },
        ],
      },
    });
    const task = { ...driver.task({ ...HTTPD, networkMode: "bridge", ports: ["http", "admin"] }), resources };
    const { handle, response } = await driver.startTask(task);
    const { addr, portMap } = response.networkOverride ?? {};
    assert.deepEqual(portMap, { http: 8080, admin: 8080 });
    await until("the task answers", () => answers(`http://${addr}:8080/`));
    const published = `http://127.0.0.1:${HOST_PORT}/`;
    assert.ok(await answers(published));
    assert.ok(await answers(`http://127.0.0.2:${ADDRESS_PORT}/`));
    assert.equal(await answers(`http://127.0.0.1:${ADDRESS_PORT}/`), false);
    await driver.kill();
    assert.ok(await answers(published));
    await driver.launch();
    await driver.call("recoverTask", { taskId: "", handle });
    assert.ok(await answers(published));
    await driver.call("destroyTask", { taskId: task.id, force: true });
    assert.equal(await answers(published), false);
    assert.deepEqual(namespaces(), []);
    assert.deepEqual(readdirSync(join(driver.options.dataDir, "networks")), []);
    const unknown = driver.task({ ...HTTPD, networkMode: "bridge", ports: ["nope"] });
    await assert.rejects(driver.call("startTask", { task: unknown }), { code: 3, details: /nope/ });
  },
);

test("an allocation's network is created once, shared by its tasks and removed", LIMIT, async () => {
  const allocId = "5f0c1d9e-7a34-4b7e-9f50-0d9b1f1f2a11";
  const made = await driver.call("createNetwork", { allocId, hostname: "group" });
  assert.equal(made.created, true);
  assert.deepEqual(await driver.call("createNetwork", { allocId, hostname: "group" }), {
    ...made,
    created: false,
  });
  const spec = made.isolationSpec;
  assert.ok(spec && spec.mode === Mode.GROUP && existsSync(spec.path));
  const server = { ...driver.task(HTTPD), networkIsolationSpec: spec };
  const client = { ...driver.task({ command: "sleep", args: ["1000"] }), networkIsolationSpec: spec };
  await Promise.all([driver.startTask(server), driver.startTask(client)]);
  const exec = async (command: string[]) => {
    const { stdout, result } = await driver.call("execTask", { taskId: client.id, command });
    return { text: stdout.toString(), code: result?.exitCode };
  };
  await until(
    "one task reaches the other",
    async () => (await exec(["wget", "-qO-", "http://127.0.0.1:8080/"])).text === "ok\n",
  );
  assert.match((await exec(["cat", "/etc/hosts"])).text, new RegExp(`${spec.hostsConfig?.address}\\tgroup`));
  for (const { id: taskId } of [server, client]) await driver.call("destroyTask", { taskId, force: true });
  assert.ok(existsSync(spec.path));
  await driver.call("destroyNetwork", { allocId, isolationSpec: spec });
  await driver.call("destroyNetwork", { allocId, isolationSpec: spec });
  assert.deepEqual(namespaces(), []);
});
