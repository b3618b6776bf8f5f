import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";

export interface CoordinatorProcess {
  readonly pid: number;
  /** `address:port` of gRPC. */
  readonly address: string;
  readonly caPem: string;
  readonly token: string;
  /** The port of Destination in plain text. */
  readonly destinationPort: number;
  close(): Promise<void>;
}

const START_LIMIT_MS = 60_000;

/** The coordinator as it is run, with its store on disk, in a directory that goes with it. */
export async function startCoordinatorProcess(
  nodeOptions: readonly string[] = [],
  settings: Readonly<Record<string, unknown>> = {},
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
  const main = join(import.meta.dirname, "../../coordinator/src/main.ts");
  const child = spawn(process.execPath, [...nodeOptions, main, "--config", configFile], {
    stdio: ["ignore", 2, 2],
  });
  const ended = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  const deadlineMs = performance.now() + START_LIMIT_MS;
  while (!(await isOpen(port))) {
    if (child.exitCode !== null || performance.now() > deadlineMs)
      throw new Error("the coordinator did not start");
    await delay(100);
  }
  return {
    pid: child.pid ?? 0,
    address,
    destinationPort,
    caPem: readFileSync(join(dir, "ca.crt"), "utf8"),
    token: readFileSync(tokenFile, "utf8"),
    close: async () => {
      child.kill("SIGTERM");
      await ended;
      rmSync(dir, { recursive: true, force: true });
    },
  };
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
