import { Server, ServerCredentials } from "@grpc/grpc-js";
import { addDriverService } from "../driver-service.ts";
import type { OnCallError } from "../rpc/handlers.ts";
import type { DriverLog } from "../tasks/open-task-driver.ts";
import { addBasePlugin } from "./base-plugin.ts";
import { formatHandshake } from "./handshake.ts";
import { listenTcp, listenUnix, type PluginSocket } from "./listen.ts";
import type { NomadDriver } from "./nomad-driver.ts";
import type { PluginEnvironment } from "./plugin-environment.ts";
import { addHealthService, addPluginServices } from "./plugin-services.ts";

export interface PluginOptions {
  readonly environment: PluginEnvironment;
  readonly network: "unix" | "tcp";
  readonly driver: NomadDriver;
  readonly log: DriverLog;
  /** Writes the handshake, the only output on stdout. */
  readonly writeHandshake: (line: string) => void;
  readonly nowMs: () => number;
  /**
   * Called once when the plugin has stopped, after a request of Nomad or a call of `stop`, and the socket is removed.
   */
  readonly onStopped: () => void;
}

export interface RunningPlugin {
  stop(): void;
}

/** This is large enough for an exec with the content of a job file. It is also the default limit of Nomad's client. */
const MAX_MESSAGE_BYTES = 4 * 1024 * 1024;
/** The time for sending the reply to Shutdown. Nomad kills the plugin after 2 s. */
const REPLY_MS = 100;
/** The part of these 2 s that is left for writing the state of tasks to disk. */
const CLOSE_MS = 1_200;

/** Serves Nomad until Nomad stops the plugin. Tasks keep running. */
export async function runPlugin(options: PluginOptions): Promise<RunningPlugin> {
  const { environment, driver, log } = options;
  const tls = await openTls(options);
  const server = new Server({
    "grpc.max_receive_message_length": MAX_MESSAGE_BYTES,
    "grpc.max_send_message_length": MAX_MESSAGE_BYTES,
  });
  const onError: OnCallError = (method, error) => log("warn", "call-failed", { method, error });
  let isStopping = false;
  const stop = (): void => {
    if (isStopping) return;
    isStopping = true;
    void close(server, listening, driver, log).then(options.onStopped);
  };
  addHealthService(server);
  addPluginServices(server, stop);
  addBasePlugin(server, driver, onError);
  addDriverService(server, driver, onError);
  const listening =
    options.network === "tcp"
      ? await listenTcp(server, tls.credentials, environment.ports)
      : await listenUnix(server, tls.credentials, environment);
  const { network, address } = listening;
  const { certificate } = tls;
  options.writeHandshake(
    formatHandshake({ network, address, certificate, statesMultiplexing: environment.asksForMultiplexing }),
  );
  return { stop };
}

async function openTls({ environment, nowMs }: PluginOptions) {
  const { clientCertificate } = environment;
  if (clientCertificate === undefined)
    return { credentials: ServerCredentials.createInsecure(), certificate: "" };
  // Nomad itself does not use TLS, so the certificate code is loaded only for hosts that do.
  const { makeAutoMtls } = await import("./auto-mtls.ts");
  return await makeAutoMtls(clientCertificate, nowMs());
}

async function close(
  server: Server,
  listening: PluginSocket,
  driver: NomadDriver,
  log: DriverLog,
): Promise<void> {
  const closed = driver.close().catch((error: unknown) => log("warn", "close-failed", { error }));
  await new Promise((resolve) => setTimeout(resolve, REPLY_MS));
  listening.remove();
  server.forceShutdown();
  await Promise.race([closed, new Promise((resolve) => setTimeout(resolve, CLOSE_MS))]);
}
