import { type ChildProcess, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { BasePluginClient } from "@forage/proto/plugins/base/proto/base";
import { DriverClient, TaskConfig } from "@forage/proto/plugins/drivers/proto/driver";
import {
  type ClientReadableStream,
  type ClientUnaryCall,
  credentials,
  type ServiceError,
} from "@grpc/grpc-js";
import { encode } from "@msgpack/msgpack";
import type { TestHost } from "../../hack/lib/test-host.ts";

const COOKIE = "e4327c2e01eabfd75a8a67adb114fb34a757d57eee7728d857a8cec6e91a7255";
/** The unit in which Linux counts processor time, a hundredth of a second. */
const TICK_MS = 10;
const KIB = 1024;
const EVERY_SECOND = { seconds: 1n, nanos: 0 };

export interface Memory {
  /** All pages in memory, including those of the node program that processes share. */
  readonly residentBytes: number;
  /** Pages that no other process has, which is the cost of a further plugin. */
  readonly privateBytes: number;
}

/** An installed plugin, started like Nomad starts it. */
export class InstalledPlugin {
  /** The time from the start of the process to the handshake line. */
  readonly startMs: number;
  readonly #child: ChildProcess;
  readonly #base: BasePluginClient;
  readonly #driver: DriverClient;

  private constructor(child: ChildProcess, startMs: number, target: string) {
    this.#child = child;
    this.startMs = startMs;
    this.#base = new BasePluginClient(target, credentials.createInsecure());
    this.#driver = new DriverClient(target, credentials.createInsecure());
  }

  /** Starts the launcher and waits for the handshake. */
  static async launch(launcher: string): Promise<InstalledPlugin> {
    const startedMs = performance.now();
    const child = spawn(launcher, [], {
      stdio: ["ignore", "pipe", "inherit"],
      env: { ...process.env, NOMAD_PLUGIN_MAGIC_COOKIE: COOKIE, PLUGIN_PROTOCOL_VERSIONS: "2" },
    });
    const ended = once(child, "exit").then(() => undefined);
    const first = await Promise.race([once(createInterface({ input: child.stdout }), "line"), ended]);
    if (first === undefined) throw new Error("the plugin ended without a handshake");
    const startMs = performance.now() - startedMs;
    return new InstalledPlugin(child, startMs, `unix:${String(first[0]).split("|")[3]}`);
  }

  async configure(host: TestHost): Promise<void> {
    const config = {
      ...{ containerd_address: host.containerd.address, containerd_namespace: host.namespace },
      ...{ nerdctl: host.nerdctlPath, data_dir: join(host.dir, "data"), run_dir: join(host.dir, "run") },
    };
    await unary((done) =>
      this.#base.setConfig(
        {
          msgpackConfig: Buffer.from(encode(config)),
          nomadConfig: { driver: { ClientMaxPort: 0, ClientMinPort: 0 } },
          pluginApiVersion: "v0.1.0",
        },
        done,
      ),
    );
  }

  /** Starts a task that sleeps, and returns its id. */
  async start(host: TestHost): Promise<string> {
    const allocId = randomUUID();
    const task = TaskConfig.fromPartial({
      ...{ id: `${allocId}/web/${allocId.slice(0, 8)}`, name: "web", allocId },
      ...{ stdoutPath: "/dev/null", stderrPath: "/dev/null" },
      msgpackDriverConfig: Buffer.from(encode({ image: host.image, command: "sleep", args: ["1000"] })),
    });
    await unary((done) => this.#driver.startTask({ task }, done));
    return task.id;
  }

  async exec(taskId: string): Promise<void> {
    await unary((done) => this.#driver.execTask({ taskId, command: ["true"], timeout: undefined }, done));
  }

  async destroy(taskId: string): Promise<void> {
    await unary((done) => this.#driver.destroyTask({ taskId, force: true }, done));
  }

  /** Reads the task's statistics each second, as Nomad does. */
  stats(taskId: string): ClientReadableStream<unknown> {
    const stream = this.#driver.taskStats({ taskId, collectionInterval: EVERY_SECOND });
    stream.on("error", () => undefined);
    return stream;
  }

  /** Returns the processor time of the plugin's own process so far, without that of nerdctl. */
  cpuMs(): number {
    const stat = readFileSync(`/proc/${this.#child.pid}/stat`, "utf8");
    // Fields are counted after the name in parentheses. User and system time are the 12th and 13th.
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return (Number(fields[11]) + Number(fields[12])) * TICK_MS;
  }

  memory(): Memory {
    const rollup = readFileSync(`/proc/${this.#child.pid}/smaps_rollup`, "utf8");
    const bytes = (name: string): number =>
      Number(new RegExp(`^${name}:\\s+(\\d+) kB$`, "m").exec(rollup)?.[1]) * KIB;
    return { residentBytes: bytes("Rss"), privateBytes: bytes("Private_Clean") + bytes("Private_Dirty") };
  }

  async close(): Promise<void> {
    this.#base.close();
    this.#driver.close();
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const ended = once(this.#child, "exit");
    this.#child.kill("SIGKILL");
    await ended;
  }
}

function unary<Response>(
  send: (done: (error: ServiceError | null, response: Response) => void) => ClientUnaryCall,
): Promise<Response> {
  return new Promise((resolve, reject) => {
    send((error, response) => (error === null ? resolve(response) : reject(error)));
  });
}
