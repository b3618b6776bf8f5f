import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import {
  type ExecTaskResponse,
  type StartTaskResponse,
  TaskConfig,
  type WaitTaskResponse,
} from "@forage/proto/plugins/drivers/proto/driver";
import { encode } from "@msgpack/msgpack";
import { startTestHost, type TestHost } from "../../../hack/lib/test-host.ts";
import { until } from "../until.ts";
import { PipeReader } from "./driver-under-test.ts";
import { call, PluginClient } from "./plugin-client.ts";

const LIMIT = { timeout: 120_000 };
const PROGRAM = {
  file: process.execPath,
  args: [join(import.meta.dirname, "..", "..", "src", "driver", "main.ts")],
};

let host: TestHost;
before(async () => {
  host = await startTestHost();
}, LIMIT);
after(() => host?.close(), LIMIT);

/** Starts the plugin as in Nomad's final launch. */
async function launch(): Promise<PluginClient> {
  const plugin = await PluginClient.launch(PROGRAM);
  await plugin.setConfig({
    ...{ containerd_address: host.containerd.address, containerd_namespace: host.namespace },
    ...{
      nerdctl: host.nerdctlPath,
      data_dir: join(host.dir, "driver"),
      run_dir: join(host.dir, "driver-run"),
    },
  });
  return plugin;
}

function aTask(config: Readonly<Record<string, unknown>>): TaskConfig {
  const allocId = randomUUID();
  const allocDir = join(host.dir, "alloc", allocId);
  for (const dir of ["alloc/logs", "web/local", "web/secrets"])
    mkdirSync(join(allocDir, dir), { recursive: true });
  const stdoutPath = join(allocDir, "alloc/logs/.web.stdout.fifo");
  execFileSync("mkfifo", ["-m", "600", stdoutPath]);
  const id = `${allocId}/web/${allocId.slice(0, 8)}`;
  const msgpackDriverConfig = Buffer.from(encode({ image: host.image, args: null, ...config }));
  return TaskConfig.fromPartial({
    id,
    name: "web",
    allocId,
    allocDir,
    stdoutPath,
    stderrPath: "/dev/null",
    msgpackDriverConfig,
  });
}

test("runs a task that survives a kill and a shutdown of the plugin", LIMIT, async (t) => {
  let plugin = await launch();
  t.after(() => plugin.close());
  const script = "while [ ! -e /local/go ]; do echo tick; sleep 0.1; done; exit 7";
  const task = aTask({ command: "sh", args: ["-c", script] });
  const { id: taskId } = task;
  const stdout = new PipeReader(task.stdoutPath);
  const { handle } = await call<StartTaskResponse>((done) => plugin.driver.startTask({ task }, done));
  const ticks = async () => {
    const { length } = stdout.text;
    await until("the task writes", () => stdout.text.length > length);
  };
  await ticks();
  for (const end of [() => plugin.kill("SIGKILL"), () => plugin.shutdown()]) {
    await end();
    await ticks();
    plugin = await launch();
    await call((done) => plugin.driver.recoverTask({ taskId: "", handle }, done));
  }
  const wait = call<WaitTaskResponse>((done) => plugin.driver.waitTask({ taskId }, done));
  const command = ["sh", "-c", "exit 3"];
  const exec = await call<ExecTaskResponse>((done) =>
    plugin.driver.execTask({ taskId, command, timeout: { seconds: 30n, nanos: 0 } }, done),
  );
  assert.equal(exec.result?.exitCode, 3);
  // Not by the command above: the task's end would kill it before it ends by itself.
  writeFileSync(join(task.allocDir, "web/local/go"), "");
  assert.equal((await wait).result?.exitCode, 7);
  await call((done) => plugin.driver.destroyTask({ taskId, force: false }, done));
  assert.equal((await host.nerdctl(["ps", "-aq"])).stdout, "");
});
