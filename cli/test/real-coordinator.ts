import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { bundledProgram } from "../../hack/bundling/bundled-program.ts";

const COORDINATOR = await bundledProgram("coordinator");

/** The time limit of a start. A cold start takes a second, and more on a loaded machine. */
const START_LIMIT_MS = 120_000;

/** A real coordinator in its own process with its own store on loopback. No node joins it. */
export class RealCoordinator {
  readonly dir = mkdtempSync(join(tmpdir(), "forage-cli-test-"));
  readonly #settings: object;
  #process: ChildProcess | undefined;
  #address = "127.0.0.1:0";

  /** Creates a coordinator. `settings` are further settings of its configuration. */
  constructor(settings: object = {}) {
    this.#settings = settings;
  }

  /** Starts the process. A later start uses the same address. */
  async start(): Promise<void> {
    const config = join(this.dir, "coordinator.yaml");
    writeFileSync(config, JSON.stringify(this.#config()));
    const child = spawn(process.execPath, [COORDINATOR, "--config", config], {
      stdio: ["ignore", "pipe", "pipe"],
    });
    this.#process = child;
    this.#address = await new Promise<string>((resolve, reject) => {
      let log = "";
      const fail = (why: string): void => reject(new Error(`the coordinator ${why}:\n${log}`));
      const timer = setTimeout(() => fail("did not start in time"), START_LIMIT_MS);
      const read = (text: string): void => {
        log += text;
        const up = log.split("\n").find((line) => line.includes('"coordinator-started"'));
        if (up === undefined) return;
        clearTimeout(timer);
        const { grpc } = JSON.parse(up) as { grpc: { host: string; port: number } };
        resolve(`${grpc.host}:${grpc.port}`);
      };
      child.stdout?.setEncoding("utf8").on("data", read);
      child.stderr?.setEncoding("utf8").on("data", read);
      child.on("exit", (code) => fail(`ended with ${code}`));
    });
  }

  get env(): Record<string, string> {
    return {
      FORAGE_SERVER: this.#address,
      FORAGE_CA_FILE: join(this.dir, "data/ca.crt"),
      FORAGE_TOKEN_FILE: join(this.dir, "admin-token"),
    };
  }

  async kill(): Promise<void> {
    const child = this.#process;
    if (child === undefined) return;
    this.#process = undefined;
    const ended = new Promise((resolve) => child.once("close", resolve));
    child.kill("SIGKILL");
    await ended;
  }

  async close(): Promise<void> {
    await this.kill();
    rmSync(this.dir, { recursive: true, force: true });
  }

  #config(): unknown {
    return {
      workspaces: { enabled: true },
      dataDir: join(this.dir, "data"),
      grpc: { listen: this.#address },
      http: { listen: "127.0.0.1:0" },
      adminTokenFile: join(this.dir, "admin-token"),
      rollout: { placementDeadlineSeconds: 2 },
      ...this.#settings,
    };
  }
}
