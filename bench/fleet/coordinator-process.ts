import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { bundlePrograms } from "../../hack/bundling/bundle-programs.ts";
import { COORDINATOR_ENVIRONMENT, COORDINATOR_NODE_OPTIONS } from "../../hack/instance/describe-programs.ts";

export interface CoordinatorProcess {
  readonly pid: number;
  /** The `address:port` of gRPC. */
  readonly address: string;
  readonly caPem: string;
  readonly token: string;
  /** The port of Destination in plain text. */
  readonly destinationPort: number;
  /**
   * Kills the process with SIGKILL and restarts it with the same files and ports. Resolves when it accepts connections.
   */
  restart(): Promise<void>;
  close(): Promise<void>;
}

interface Running {
  readonly child: ChildProcess;
  readonly ended: Promise<void>;
}

const START_LIMIT_MS = 60_000;

/**
 * Starts the coordinator in its usual form, as a bundle with its store on disk, in a temporary directory. `prepare` may create a
 * store in the data directory before the start.
 */
export async function startCoordinatorProcess(
  nodeOptions: readonly string[] = COORDINATOR_NODE_OPTIONS,
  settings: Readonly<Record<string, unknown>> = {},
  prepare: (dataDir: string) => Promise<void> = async () => {},
): Promise<CoordinatorProcess> {
  const dir = mkdtempSync(join(tmpdir(), "forage-bench-"));
  const port = await freePort();
  const address = `127.0.0.1:${port}`;
  const destinationPort = await freePort();
  const tokenFile = join(dir, "admin.token");
  const config = {
    dataDir: dir,
    grpc: { listen: address },
    http: { listen: `127.0.0.1:${await freePort()}` },
    destination: { listen: `127.0.0.1:${destinationPort}` },
    adminTokenFile: tokenFile,
    logLevel: "warn",
    ...settings,
  };
  const configFile = join(dir, "coordinator.yaml");
  writeFileSync(configFile, JSON.stringify(config));
  const main = await bundleCoordinator();
  await prepare(dir);
  const args = [...nodeOptions, main, "--config", configFile];
  let running = await startProgram(args, port);
  // After an error that nothing handles, `close` is not called.
  const onExit = (): void => {
    running.child.kill("SIGKILL");
    rmSync(dir, { recursive: true, force: true });
  };
  process.once("exit", onExit);
  return {
    get pid() {
      return running.child.pid ?? 0;
    },
    address,
    destinationPort,
    caPem: readFileSync(join(dir, "ca.crt"), "utf8"),
    token: readFileSync(tokenFile, "utf8"),
    restart: async () => {
      running.child.kill("SIGKILL");
      await running.ended;
      running = await startProgram(args, port);
    },
    close: async () => {
      process.off("exit", onExit);
      running.child.kill("SIGTERM");
      await running.ended;
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

/** Returns the path of the program. */
async function bundleCoordinator(): Promise<string> {
  const root = join(import.meta.dirname, "../..");
  const outDir = join(root, "dist");
  await bundlePrograms({ root, outDir, programs: { coordinator: "coordinator/src/main.ts" } });
  return join(outDir, "coordinator.mjs");
}

async function startProgram(args: readonly string[], port: number): Promise<Running> {
  const env = { ...process.env, ...COORDINATOR_ENVIRONMENT };
  const child = spawn(process.execPath, args, { stdio: ["ignore", 2, 2], env });
  const ended = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  const deadlineMs = performance.now() + START_LIMIT_MS;
  while (!(await isOpen(port))) {
    if (child.exitCode !== null || performance.now() > deadlineMs) {
      child.kill("SIGKILL");
      throw new Error("the coordinator did not start");
    }
    await delay(100);
  }
  return { child, ended };
}

function isOpen(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host: "127.0.0.1", port });
    socket.once("connect", () => {
      socket.destroy();
      resolve(true);
    });
    socket.once("error", () => resolve(false));
  });
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const address = server.address();
      server.close(() => resolve(typeof address === "object" && address !== null ? address.port : 0));
    });
  });
}
