import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { BasePluginClient } from "@forage/proto/plugins/base/proto/base";
import { DriverClient, TaskConfig } from "@forage/proto/plugins/drivers/proto/driver";
import { credentials } from "@grpc/grpc-js";
import { encode } from "@msgpack/msgpack";
import { bundlePrograms } from "../../hack/bundling/bundle-programs.ts";
import { AGENT_NODE_OPTIONS } from "../../hack/instance/describe-programs.ts";
import type { TestHost } from "../../hack/lib/test-host.ts";

const ROOT = join(import.meta.dirname, "..", "..");
const COOKIE = "e4327c2e01eabfd75a8a67adb114fb34a757d57eee7728d857a8cec6e91a7255";

/** Resident memory of the plugin as it is installed, in MiB, after it has started and watched so many tasks. */
export async function pluginMemory(host: TestHost, tasks: number): Promise<number> {
  const outDir = join(host.dir, "plugin");
  await bundlePrograms({ root: ROOT, outDir, programs: { plugin: "agent/src/driver/main.ts" } });
  const env = { ...process.env, NOMAD_PLUGIN_MAGIC_COOKIE: COOKIE, PLUGIN_PROTOCOL_VERSIONS: "2" };
  const child = spawn(process.execPath, [...AGENT_NODE_OPTIONS, join(outDir, "plugin.mjs")], {
    env,
    stdio: ["ignore", "pipe", "ignore"],
  });
  try {
    const [line] = (await once(child.stdout, "data")) as [Buffer];
    const target = `unix:${line.toString().split("|")[3]}`;
    await setConfig(new BasePluginClient(target, credentials.createInsecure()), host);
    const driver = new DriverClient(target, credentials.createInsecure());
    for (let i = 0; i < tasks; i += 1) await startTask(driver, host, i);
    const status = readFileSync(`/proc/${child.pid}/status`, "utf8");
    return Math.round(Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) / 1024);
  } finally {
    child.kill("SIGKILL");
  }
}

async function setConfig(base: BasePluginClient, host: TestHost): Promise<void> {
  const config = {
    ...{ containerd_address: host.containerd.address, containerd_namespace: host.namespace },
    ...{
      nerdctl: host.nerdctlPath,
      data_dir: join(host.dir, "plugin-data"),
      run_dir: join(host.dir, "plugin-run"),
    },
  };
  const msgpackConfig = Buffer.from(encode(config));
  const nomadConfig = { driver: { ClientMaxPort: 0, ClientMinPort: 0 } };
  await new Promise<void>((resolve, reject) =>
    base.setConfig({ msgpackConfig, nomadConfig, pluginApiVersion: "v0.1.0" }, (error) =>
      error ? reject(error) : resolve(),
    ),
  );
}

async function startTask(driver: DriverClient, host: TestHost, index: number): Promise<void> {
  const invocation = index.toString(16).padStart(8, "0");
  const task = TaskConfig.fromPartial({
    ...{ id: `memory/web/${invocation}`, name: "web", allocId: "memory" },
    ...{ stdoutPath: "/dev/null", stderrPath: "/dev/null" },
    msgpackDriverConfig: Buffer.from(encode({ image: host.image, command: "sleep", args: ["1000"] })),
  });
  await new Promise<void>((resolve, reject) =>
    driver.startTask({ task }, (error) => (error ? reject(error) : resolve())),
  );
  const stats = driver.taskStats({ taskId: task.id, collectionInterval: { seconds: 1n, nanos: 0 } });
  stats.on("error", () => undefined);
  await once(stats, "data");
}
