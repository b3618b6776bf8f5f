import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { bearerMetadata, channelCredentials } from "@forage/identity/credentials";
import { OperatorServiceService } from "@forage/proto/forage/operator/v1/operator";
import { ForageServiceService } from "@forage/proto/forest/v1/forage";
import { Client, type ServiceDefinition } from "@grpc/grpc-js";
import { bundledProgram } from "../../../hack/bundling/bundled-program.ts";
import { type Calls, callsOf } from "./calls.ts";
import type { AgentWorld } from "./hollow-agent.ts";

const COORDINATOR = await bundledProgram("coordinator");

/** The time limit of a start. A cold start takes a second, and more on a loaded machine. */
const START_LIMIT_MS = 120_000;

/** A coordinator in its own process, with a data directory that survives it. */
export class CoordinatorProcess implements AgentWorld {
  readonly dataDir: string;
  readonly address: string;
  readonly #child: ChildProcess;
  readonly #closers: (() => void)[] = [];

  private constructor(dataDir: string, address: string, child: ChildProcess) {
    this.dataDir = dataDir;
    this.address = address;
    this.#child = child;
  }

  /** Starts a coordinator. `more` are further settings of its configuration. */
  static async start(
    t: TestContext,
    dir: string,
    more: Readonly<Record<string, unknown>> = {},
  ): Promise<CoordinatorProcess> {
    mkdirSync(dir, { recursive: true });
    const dataDir = join(dir, "data");
    const settings = {
      dataDir,
      grpc: { listen: "127.0.0.1:0" },
      http: { listen: "127.0.0.1:0" },
      adminTokenFile: join(dir, "admin-token"),
      ...more,
    };
    writeFileSync(configOf(dir), JSON.stringify(settings));
    const child = spawn(process.execPath, [COORDINATOR, "--config", configOf(dir)], {
      stdio: ["ignore", "pipe", "pipe"],
    });
    t.after(() => child.kill("SIGKILL"));
    const started = new CoordinatorProcess(dataDir, await addressOf(child), child);
    t.after(() => started.#closeClients());
    return started;
  }

  get caPem(): string {
    return readFileSync(join(this.dataDir, "ca.crt"), "utf8");
  }

  operator(): Calls<typeof OperatorServiceService> {
    return this.#calls(OperatorServiceService);
  }

  forage(): Calls<typeof ForageServiceService> {
    return this.#calls(ForageServiceService);
  }

  atEnd(close: () => void): void {
    this.#closers.push(close);
  }

  /** Kills the process, as a power failure would. */
  async kill(): Promise<void> {
    this.#closeClients();
    const ended = once(this.#child, "close");
    this.#child.kill("SIGKILL");
    await ended;
  }

  #calls<S extends ServiceDefinition>(definition: S): Calls<S> {
    const token = readFileSync(join(this.dataDir, "../admin-token"), "utf8").trim();
    const client = new Client(this.address, channelCredentials({ caPem: this.caPem }));
    this.#closers.push(() => client.close());
    return callsOf(definition, client, bearerMetadata(token));
  }

  #closeClients(): void {
    for (const close of this.#closers.splice(0)) close();
  }
}

/** Runs a task of the program on the data directory of a stopped coordinator. */
export async function runTask(t: TestContext, dir: string, words: readonly string[]) {
  const args = [COORDINATOR, ...words, "--data-dir", join(dir, "data")];
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "pipe"] });
  t.after(() => child.kill("SIGKILL"));
  const [stdout, stderr, [code]] = await Promise.all([
    child.stdout.setEncoding("utf8").toArray(),
    child.stderr.setEncoding("utf8").toArray(),
    once(child, "close"),
  ]);
  return { code, stdout: stdout.join(""), stderr: stderr.join("") };
}

function configOf(dir: string): string {
  return join(dir, "coordinator.json");
}

async function addressOf(child: ChildProcess): Promise<string> {
  let log = "";
  return new Promise<string>((resolve, reject) => {
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
    child.once("exit", (code) => {
      clearTimeout(timer);
      fail(`ended with ${code}`);
    });
  });
}
