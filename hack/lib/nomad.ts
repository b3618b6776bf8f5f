import { mkdirSync, rmdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { ensureGoProgram, findGoProgram } from "./go-program.ts";
import { type RunOptions, type RunResult, run } from "./run.ts";
import type { Program } from "./spawn-program.ts";
import type { TestHost } from "./test-host.ts";
import { waitFor } from "./wait-for.ts";

const SOURCES = join(import.meta.dirname, "..", "nomad");
const ADDRESS = "http://127.0.0.1:4646";
const BUILD_LIMIT_MS = 60 * 60_000;
const START_LIMIT_MS = 120_000;
const STOP_GRACE_MS = 30_000;
const CNI_BIN_DIR = "/usr/lib/cni";
// The cgroups that Nomad leaves behind.
const CGROUPS = ["shared", "reserved", ""].map((name) => join("/sys/fs/cgroup/cpuset/nomad", name));

/** Compiles Nomad unless it was compiled before, and returns its path. */
export function buildNomad(): Promise<string> {
  return ensureGoProgram(SOURCES, "nomad", {
    ...{ package: "github.com/hashicorp/nomad", cgo: true, buildLimitMs: BUILD_LIMIT_MS },
    report: console.error,
  });
}

/** Returns Nomad's path if it was compiled before. */
export function findNomad(): string | undefined {
  return findGoProgram(SOURCES, "nomad");
}

export interface NomadOptions {
  readonly host: TestHost;
  /** Path of Nomad. */
  readonly program: string;
  /** The texts of plugin programs, by the name of their file. */
  readonly plugins: Readonly<Record<string, string>>;
  /** The `plugin` blocks in Nomad's language. */
  readonly pluginConfig: string;
}

/** A Nomad agent that is both server and client, in a separate network namespace. Its state survives a restart. */
export class NomadUnderTest {
  readonly #options: NomadOptions;
  readonly #dir: string;
  readonly #namespace: string;
  #program: Program | undefined;
  #lives = 0;

  private constructor(options: NomadOptions) {
    this.#options = options;
    this.#dir = join(options.host.dir, "nomad");
    this.#namespace = `forage-nomad-${options.host.name}`;
  }

  static async start(options: NomadOptions): Promise<NomadUnderTest> {
    const nomad = new NomadUnderTest(options);
    await nomad.#prepare();
    try {
      await nomad.launch();
    } catch (error) {
      await nomad.close();
      throw error;
    }
    return nomad;
  }

  /** Starts or restarts the agent, and waits until the node is ready. */
  async launch(): Promise<void> {
    this.#lives += 1;
    const { host, program } = this.#options;
    const args = [`--net=/run/netns/${this.#namespace}`, program, "agent", `-config=${this.#dir}/agent.hcl`];
    this.#program = host.spawn(`nomad-${this.#lives}`, "nsenter", args);
    await waitFor(async () => / ready\b/.test((await this.run(["node", "status"], true)).stdout), {
      what: "Nomad's node is ready",
      limitMs: START_LIMIT_MS,
      everyMs: 250,
      explain: () => this.readLog().slice(-4_000),
    });
  }

  /** Runs Nomad's command line. */
  run(args: readonly string[], allowFailure = false, options: RunOptions = {}): Promise<RunResult> {
    return run("nsenter", this.commandLine(args), { allowFailure, ...this.#client(options) });
  }

  /** Returns the command line as arguments of `nsenter`, for callers that run it themselves. */
  commandLine(args: readonly string[]): readonly string[] {
    return [`--net=/run/netns/${this.#namespace}`, this.#options.program, ...args];
  }

  /** Returns a response of Nomad's HTTP API. */
  async get(path: string): Promise<unknown> {
    return JSON.parse((await this.run(["operator", "api", "-X", "GET", path])).stdout);
  }

  /** Ends the agent as in a crash, or as in its own stop, which also ends its plugins. */
  async end(how: "SIGKILL" | "SIGINT"): Promise<void> {
    this.#program?.kill(how);
    await this.#program?.exited;
  }

  readLog(): string {
    return this.#program?.readLog() ?? "";
  }

  async close(): Promise<void> {
    await this.#program?.end(STOP_GRACE_MS);
    // Log collectors, executors and plugins outlive the agent, so a later agent can find them.
    const { stdout } = await run("ip", ["netns", "pids", this.#namespace], { allowFailure: true });
    for (const pid of stdout.split("\n").filter(Boolean)) endNow(Number(pid));
    await run("ip", ["netns", "delete", this.#namespace], { allowFailure: true });
    for (const dir of CGROUPS) {
      try {
        rmdirSync(dir);
      } catch {
        // The cgroup doesn't exist, or has tasks of another Nomad.
      }
    }
  }

  async #prepare(): Promise<void> {
    const { plugins, pluginConfig } = this.#options;
    for (const dir of ["plugins", "cni", "data"]) mkdirSync(join(this.#dir, dir), { recursive: true });
    for (const [name, text] of Object.entries(plugins))
      writeFileSync(join(this.#dir, "plugins", name), text, { mode: 0o755 });
    writeFileSync(join(this.#dir, "cni", "group.conflist"), JSON.stringify(GROUP_NETWORK));
    writeFileSync(join(this.#dir, "agent.hcl"), configText(this.#dir, pluginConfig));
    await run("ip", ["netns", "add", this.#namespace]);
    await run("ip", ["-n", this.#namespace, "link", "set", "lo", "up"]);
  }

  #client(options: RunOptions): RunOptions {
    return { ...options, env: { ...options.env, NOMAD_ADDR: ADDRESS } };
  }
}

function endNow(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // The process has ended.
  }
}

const GROUP_NETWORK = {
  cniVersion: "0.4.0",
  name: "group",
  plugins: [
    { type: "loopback" },
    { type: "bridge", bridge: "group0", ipam: { type: "host-local", subnet: "10.77.0.0/24" } },
  ],
};

function configText(dir: string, pluginConfig: string): string {
  return `data_dir = "${dir}/data"
plugin_dir = "${dir}/plugins"
bind_addr = "127.0.0.1"
advertise {
  http = "127.0.0.1"
  rpc = "127.0.0.1"
  serf = "127.0.0.1"
}
disable_update_check = true
log_level = "INFO"
server {
  enabled = true
  bootstrap_expect = 1
  num_schedulers = 1
}
client {
  enabled = true
  network_interface = "lo"
  cni_path = "${CNI_BIN_DIR}"
  cni_config_dir = "${dir}/cni"
  options = {
    "fingerprint.denylist" = "env_aws,env_gce,env_azure,env_digitalocean,consul,vault,bridge"
    "driver.allowlist" = "forage,raw_exec"
  }
}
plugin "raw_exec" {
  config {
    enabled = true
  }
}
${pluginConfig}`;
}
