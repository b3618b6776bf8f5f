import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { type HealthCheckResponse, HealthClient } from "@forage/proto/grpc/health/v1/health";
import { GRPCBrokerClient } from "@forage/proto/plugin/broker";
import { GRPCControllerClient } from "@forage/proto/plugin/controller";
import { GRPCStdioClient } from "@forage/proto/plugin/stdio";
import {
  BasePluginClient,
  type ConfigSchemaResponse,
  type PluginInfoResponse,
} from "@forage/proto/plugins/base/proto/base";
import { DriverClient } from "@forage/proto/plugins/drivers/proto/driver";
import { ChannelCredentials, type ClientUnaryCall, Metadata, type ServiceError } from "@grpc/grpc-js";
import { encode } from "@msgpack/msgpack";

export const COOKIE = "e4327c2e01eabfd75a8a67adb114fb34a757d57eee7728d857a8cec6e91a7255";
/** Nomad's own limit for the handshake. */
const START_LIMIT_MS = 60_000;
/** After Shutdown, go-plugin waits this long before it kills the plugin. */
export const EXIT_LIMIT_MS = 2_000;

/** A command line that starts the plugin. */
export interface PluginProgram {
  readonly file: string;
  readonly args: readonly string[];
}

export interface LaunchOptions {
  readonly env?: Readonly<Record<string, string | undefined>>;
}

export interface Exit {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** The fields of the handshake. */
export interface HandshakeFields {
  readonly core: string;
  readonly app: string;
  readonly network: string;
  readonly address: string;
  readonly protocol: string;
  readonly certificate: string;
  readonly multiplex: string | undefined;
}

/** A plugin process and connections to it, as in Nomad's client. */
export class PluginClient {
  readonly handshake: HandshakeFields;
  /** The process id. 0 for a client that attached to a running plugin. */
  readonly pid: number;
  readonly health: HealthClient;
  readonly base: BasePluginClient;
  readonly driver: DriverClient;
  readonly controller: GRPCControllerClient;
  readonly stdio: GRPCStdioClient;
  readonly broker: GRPCBrokerClient;
  readonly #child: ChildProcess | undefined;
  readonly #output: Output;

  private constructor(
    child: ChildProcess | undefined,
    output: Output,
    handshake: HandshakeFields,
    credentials: ChannelCredentials,
  ) {
    this.#child = child;
    this.pid = child?.pid ?? 0;
    this.#output = output;
    this.handshake = handshake;
    const target = handshake.network === "unix" ? `unix:${handshake.address}` : handshake.address;
    const options = { "grpc.default_authority": "localhost", "grpc.ssl_target_name_override": "localhost" };
    this.health = new HealthClient(target, credentials, options);
    this.base = new BasePluginClient(target, credentials, options);
    this.driver = new DriverClient(target, credentials, options);
    this.controller = new GRPCControllerClient(target, credentials, options);
    this.stdio = new GRPCStdioClient(target, credentials, options);
    this.broker = new GRPCBrokerClient(target, credentials, options);
  }

  /** Starts the program as Nomad does, reads the handshake, checks the health and opens the stdio and broker streams. */
  static async launch(
    program: PluginProgram,
    options: LaunchOptions = {},
    credentials: (fields: HandshakeFields) => ChannelCredentials = () => ChannelCredentials.createInsecure(),
  ): Promise<PluginClient> {
    const child = start(program, options);
    const output = collect(child);
    try {
      const handshake = parseHandshake(await firstLine(child, output));
      const client = new PluginClient(child, output, handshake, credentials(handshake));
      const { status } = await call<HealthCheckResponse>((done) =>
        client.health.check(
          { service: "plugin" },
          new Metadata(),
          { deadline: Date.now() + START_LIMIT_MS },
          done,
        ),
      );
      if (status !== 1) throw new Error(`the plugin's health is ${status}`);
      client.#openStreams();
      return client;
    } catch (error) {
      child.kill("SIGKILL");
      throw error;
    }
  }

  /** Connects to a plugin that another client launched, as Nomad does after it crashed. */
  static attach(
    handshake: HandshakeFields,
    credentials: ChannelCredentials = ChannelCredentials.createInsecure(),
  ): PluginClient {
    return new PluginClient(undefined, { stdout: "", stderr: "" }, handshake, credentials);
  }

  get stdout(): string {
    return this.#output.stdout;
  }

  get stderr(): string {
    return this.#output.stderr;
  }

  /** The parsed log lines. */
  get logLines(): readonly Readonly<Record<string, unknown>>[] {
    return this.#output.stderr
      .split("\n")
      .filter((line) => line.startsWith("{"))
      .map((line) => JSON.parse(line) as Record<string, unknown>);
  }

  pluginInfo = () => call<PluginInfoResponse>((done) => this.base.pluginInfo({}, done));
  configSchema = () => call<ConfigSchemaResponse>((done) => this.base.configSchema({}, done));

  /** Sends the configuration. `nomadConfig` is absent in launches that only validate it. */
  setConfig(config: Readonly<Record<string, unknown>> | Uint8Array, lasting = true): Promise<object> {
    const msgpackConfig = Buffer.from(config instanceof Uint8Array ? config : encode(config));
    const nomadConfig = lasting ? { driver: { ClientMaxPort: 14_512, ClientMinPort: 14_000 } } : undefined;
    return call((done) =>
      this.base.setConfig({ msgpackConfig, nomadConfig, pluginApiVersion: "v0.1.0" }, done),
    );
  }

  /** Stops the plugin and returns its exit code. Kills it after Nomad's time limit. */
  async shutdown(): Promise<number | null> {
    const exited = this.exited();
    await call((done) => this.controller.shutdown({}, done)).catch(() => undefined);
    return await exited;
  }

  /** Waits for the end of the process and returns its exit code, or null if it had to be killed. */
  async exited(): Promise<number | null> {
    const child = this.#child;
    if (child === undefined) return null;
    if (child.exitCode !== null) return child.exitCode;
    const timer = setTimeout(() => child.kill("SIGKILL"), EXIT_LIMIT_MS);
    const [code] = (await once(child, "exit")) as [number | null];
    clearTimeout(timer);
    return code;
  }

  /** Closes the connections. The process continues. */
  disconnect(): void {
    for (const client of [this.health, this.base, this.driver, this.controller, this.stdio, this.broker])
      client.close();
  }

  /** Closes the ends of the pipes that Nomad holds, as Nomad's death would. */
  breakPipes(): void {
    this.#child?.stdout?.destroy();
    this.#child?.stderr?.destroy();
  }

  async kill(signal: NodeJS.Signals = "SIGKILL"): Promise<void> {
    const child = this.#child;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const gone = once(child, "exit");
    child.kill(signal);
    await gone;
  }

  async close(): Promise<void> {
    this.disconnect();
    await this.kill();
  }

  #openStreams(): void {
    for (const stream of [this.stdio.streamStdio({}), this.broker.startStream()]) {
      stream.on("error", () => undefined);
      stream.on("data", () => undefined);
    }
  }
}

/** Runs the program to its end, for launches that fail. */
export async function runToEnd(program: PluginProgram, options: LaunchOptions = {}): Promise<Exit> {
  const child = start(program, options);
  const output = collect(child);
  const [code] = (await once(child, "close")) as [number | null];
  return { code, ...output };
}

/** Sends a unary call. */
export function call<Response>(
  send: (done: (error: ServiceError | null, response: Response) => void) => ClientUnaryCall,
): Promise<Response> {
  return new Promise((resolve, reject) => {
    send((error, response) => (error === null ? resolve(response) : reject(error)));
  });
}

interface Output {
  stdout: string;
  stderr: string;
}

function start({ file, args }: PluginProgram, { env }: LaunchOptions): ChildProcess {
  return spawn(file, args, {
    stdio: ["ignore", "pipe", "pipe"],
    env: {
      ...process.env,
      NOMAD_PLUGIN_MAGIC_COOKIE: COOKIE,
      PLUGIN_MIN_PORT: "10000",
      PLUGIN_MAX_PORT: "25000",
      PLUGIN_PROTOCOL_VERSIONS: "2",
      ...env,
    },
  });
}

function collect(child: ChildProcess): Output {
  const output = { stdout: "", stderr: "" };
  child.stdout?.setEncoding("utf8").on("data", (text: string) => (output.stdout += text));
  child.stderr?.setEncoding("utf8").on("data", (text: string) => (output.stderr += text));
  return output;
}

async function firstLine(child: ChildProcess, output: Output): Promise<string> {
  const limit = AbortSignal.timeout(START_LIMIT_MS);
  if (child.stdout === null) throw new Error("no stdout");
  const lines = createInterface({ input: child.stdout });
  const ended = once(child, "exit", { signal: limit }).then(() => undefined);
  const line = await Promise.race([once(lines, "line", { signal: limit }), ended]);
  if (line === undefined) throw new Error(`the plugin ended without a handshake: ${output.stderr}`);
  return String(line[0]);
}

function parseHandshake(line: string): HandshakeFields {
  const [core = "", app = "", network = "", address = "", protocol = "", certificate = "", multiplex] =
    line.split("|");
  return { core, app, network, address, protocol, certificate, multiplex };
}
