import { readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { kill } from "node:process";
import { messageOf } from "@forage/common/message-of";
import { bundledProgram } from "../../hack/bundling/bundled-program.ts";
import { AGENT_ENVIRONMENT, AGENT_NODE_OPTIONS } from "../../hack/instance/describe-programs.ts";
import { findPodCidr } from "../../hack/instance/pod-cidr.ts";
import { removeNetworkRemains } from "../../hack/lib/network-remains.ts";
import { run } from "../../hack/lib/run.ts";
import type { Program } from "../../hack/lib/spawn-program.ts";
import type { TestHost } from "../../hack/lib/test-host.ts";
import { encodeBootId } from "../src/reset-after-reboot.ts";
import type { FakeCoordinator } from "./fake-coordinator.ts";
import { until } from "./until.ts";

/** A container of the agent as containerd reports it. */
export interface HostContainer {
  readonly id: string;
  readonly name: string;
  readonly running: boolean;
  readonly pid: number;
}

/** The bundled agent as a separate process on a test host, with a fake coordinator. */
export class AgentUnderTest {
  readonly host: TestHost;
  coordinator: FakeCoordinator;
  readonly dataDir: string;
  readonly #settings: Readonly<Record<string, unknown>>;
  readonly #program: string;
  #process: Program | undefined;
  #lives = 0;

  private constructor(
    host: TestHost,
    coordinator: FakeCoordinator,
    program: string,
    settings: Record<string, unknown>,
  ) {
    this.host = host;
    this.coordinator = coordinator;
    this.dataDir = join(host.dir, "agent");
    this.#program = program;
    this.#settings = settings;
  }

  static async prepare(
    host: TestHost,
    coordinator: FakeCoordinator,
    settings: Readonly<Record<string, unknown>> = {},
  ): Promise<AgentUnderTest> {
    const agent = new AgentUnderTest(host, coordinator, await bundledProgram("agent"), {
      dataDir: join(host.dir, "agent"),
      runDir: join(host.dir, "run"),
      coordinator: coordinator.address,
      joinTokenFile: join(host.dir, "token"),
      nodeName: "node-1",
      instance: host.name,
      podCidr: await findPodCidr(host.name),
      containerd: { address: host.containerd.address, namespace: host.namespace },
      nerdctl: host.nerdctlPath,
      http: { listen: "off" },
      hostPortRange: "25000-25999",
      advertiseAddress: "127.0.0.1",
      preparedSandboxes: 4,
      workspaces: { enabled: false },
      logLevel: "debug",
      ...settings,
    });
    await writeFile(join(host.dir, "token"), coordinator.mintToken(), { mode: 0o600 });
    return agent;
  }

  async start(): Promise<void> {
    this.#lives += 1;
    const config = join(this.host.dir, "agent.yaml");
    // JSON is valid YAML.
    await writeFile(config, JSON.stringify(this.#settings));
    const args = [...AGENT_NODE_OPTIONS, this.#program, "--config", config];
    this.#process = this.host.spawn(`agent-${this.#lives}`, process.execPath, args, {
      env: AGENT_ENVIRONMENT,
    });
  }

  get pid(): number {
    return this.#process?.identity.pid ?? 0;
  }

  /** Kills the agent with SIGKILL, so that it cleans up nothing. */
  async kill(): Promise<void> {
    this.#process?.kill("SIGKILL");
    await this.#process?.exited;
  }

  /** Stops the agent with SIGTERM and returns its exit code. */
  async stop(): Promise<number | NodeJS.Signals> {
    this.#process?.kill("SIGTERM");
    return (await this.#process?.exited) ?? 0;
  }

  /** Returns the result of a second start on the same directory. */
  async runSecond(): Promise<{ exitCode: number | NodeJS.Signals; output: string }> {
    const args = [this.#program, "--config", join(this.host.dir, "agent.yaml")];
    const second = this.host.spawn("second", process.execPath, args);
    return { exitCode: await second.exited, output: second.readLog() };
  }

  /** Simulates a reboot by removing processes, namespaces and tables. Must not be called while the agent runs. */
  async actReboot(): Promise<void> {
    for (const { pid } of (await this.containers()).filter((it) => it.running)) kill(pid, "SIGKILL");
    await removeNetworkRemains(this.host.name);
    await writeFile(join(this.dataDir, "boot-id"), encodeBootId("the boot before"));
  }

  log(): string {
    return this.#process?.readLog() ?? "";
  }

  /** Lists the containers directly from containerd, independently of the agent. */
  async containers(): Promise<readonly HostContainer[]> {
    const { stdout } = await this.host.nerdctl([
      "ps",
      "--all",
      "--no-trunc",
      "--format",
      "{{.ID}} {{.Names}} {{.Status}}",
    ]);
    const lines = stdout.split("\n").filter((line) => line.trim() !== "");
    return Promise.all(
      lines.map(async (line) => {
        const [id = "", name = "", status = ""] = line.split(" ");
        const running = status === "Up";
        return { id, name, running, pid: running ? await this.#pidOf(id) : 0 };
      }),
    );
  }

  async runningIds(): Promise<readonly string[]> {
    return (await this.containers())
      .filter((it) => it.running)
      .map((it) => it.id)
      .sort();
  }

  /** Waits for a condition, and fails with the end of the agent's log after the time limit. */
  async until(what: string, holds: () => boolean | Promise<boolean>): Promise<void> {
    try {
      await until(what, holds);
    } catch (cause) {
      throw new Error(`${messageOf(cause)}\n${this.log().slice(-4000)}`, {
        cause,
      });
    }
  }

  async untilReady(...uids: readonly string[]): Promise<void> {
    await this.until(`${uids.join(", ")} ready`, () =>
      uids.every((uid) => this.coordinator.statuses.get(uid)?.ready === true),
    );
  }

  /** Returns everything that an incomplete removal of pods leaves behind. */
  async remains(): Promise<Record<string, unknown>> {
    const { stdout } = await this.host.nerdctl(["ps", "--all", "--quiet"]);
    const snapshots = await this.#ctr(["snapshots", "ls"]);
    const list = (dir: string) => readdir(join(this.dataDir, dir)).catch(() => []);
    return {
      containers: stdout.trim(),
      // Snapshots of images are committed; a container's is active.
      snapshots: snapshots.split("\n").filter((line) => line.includes("Active")),
      podDirectories: await list("pods"),
      assignments: await list("journal/pods"),
      states: await list("journal/states"),
    };
  }

  async #pidOf(id: string): Promise<number> {
    const { stdout } = await this.host.nerdctl(["inspect", "--format", "{{.State.Pid}}", id], {
      allowFailure: true,
    });
    return Number(stdout.trim());
  }

  async #ctr(args: readonly string[]): Promise<string> {
    const options = ["--address", this.host.containerd.address, "--namespace", this.host.namespace];
    return (await run("ctr", [...options, ...args])).stdout;
  }
}
