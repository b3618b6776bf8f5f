import { mkdir, rm } from "node:fs/promises";
import { connect } from "node:net";
import { dirname } from "node:path";
import { Server, ServerCredentials } from "@grpc/grpc-js";
import type { Clock } from "../clock.ts";
import type { DriverOptions } from "./config/driver-options.ts";
import { readDriverOptions } from "./config/read-driver-options.ts";
import { addDriverService } from "./driver-service.ts";
import { bindSocket } from "./plugin/listen.ts";
import { NomadDriver } from "./plugin/nomad-driver.ts";
import { containerdObserver } from "./plugin/observe-containerd.ts";
import { addHealthService } from "./plugin/plugin-services.ts";
import type { DriverLog } from "./tasks/driver-log.ts";
import { openTaskDriver } from "./tasks/open-task-driver.ts";

export interface DriverSocketOptions {
  /** Absolute path of the socket. */
  readonly path: string;
  /** The driver's addresses and directories. All other options have the plugin's defaults. */
  readonly places: Pick<DriverOptions, "containerdAddress" | "nerdctl" | "cniBinDir" | "dataDir" | "runDir">;
  readonly version: string;
  readonly clock: Clock;
  readonly log: DriverLog;
}

/** The time that open calls get to end after the socket is closed. */
const CLOSE_MS = 1_000;

/** Serves Nomad's Driver service on a Unix socket, for local clients that run as the agent's user. */
export class DriverSocket {
  readonly #path: string;
  readonly #server: Server;
  readonly #driver: NomadDriver;

  private constructor(path: string, server: Server, driver: NomadDriver) {
    this.#path = path;
    this.#server = server;
    this.#driver = driver;
  }

  /** Rejects if another process serves the socket already. */
  static async open({ path, places, version, clock, log }: DriverSocketOptions): Promise<DriverSocket> {
    const config: DriverOptions = { ...readDriverOptions(new Uint8Array()), ...places };
    const driver = new NomadDriver(
      {
        version,
        clock,
        observe: (options) => containerdObserver(options),
        openTasks: (options) => openTaskDriver({ options, clock, log }),
      },
      config,
    );
    const server = new Server();
    addHealthService(server);
    addDriverService(server, driver, (method, error) => log("warn", "driver-call-failed", { method, error }));
    await mkdir(dirname(path), { recursive: true, mode: 0o755 });
    await removeStale(path);
    await bindSocket(server, ServerCredentials.createInsecure(), path);
    return new DriverSocket(path, server, driver);
  }

  /** Ends open calls. Tasks keep running. */
  async close(): Promise<void> {
    const drained = new Promise<void>((resolve) => this.#server.tryShutdown(() => resolve()));
    const cut = setTimeout(() => this.#server.forceShutdown(), CLOSE_MS);
    await Promise.all([drained, this.#driver.close()]);
    clearTimeout(cut);
    await rm(this.#path, { force: true });
  }
}

/** Removes the socket of an earlier process that was killed. */
async function removeStale(path: string): Promise<void> {
  const isServed = await new Promise<boolean>((resolve) => {
    const socket = connect(path);
    socket.once("connect", () => resolve(true));
    socket.once("error", () => resolve(false));
    socket.once("connect", () => socket.destroy());
  });
  if (isServed) throw new Error(`another process serves the driver's socket ${path}`);
  await rm(path, { force: true });
}
