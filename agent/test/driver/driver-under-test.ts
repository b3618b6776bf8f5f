import { execFileSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { closeSync, constants, mkdirSync, openSync, readSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import {
  type CreateNetworkResponse,
  DriverClient,
  type ExecTaskResponse,
  type InspectTaskResponse,
  type StartTaskResponse,
  TaskConfig,
  type TaskHandle,
  type WaitTaskResponse,
} from "@forage/proto/plugins/drivers/proto/driver";
import { type ClientUnaryCall, credentials, type ServiceError } from "@grpc/grpc-js";
import type { Program } from "../../../hack/lib/spawn-program.ts";
import { startTestHost, type TestHost } from "../../../hack/lib/test-host.ts";
import type { DriverOptions } from "../../src/driver/config/driver-options.ts";
import type { TaskOptions } from "../../src/driver/config/task-options.ts";
import { until } from "../until.ts";
import { driverOptions, taskOptions } from "./driver-options.ts";

const PROGRAM = join(import.meta.dirname, "driver-program.ts");

/** Runs the driver's tasks in a separate process on a test host. */
export class DriverUnderTest {
  readonly host: TestHost;
  readonly options: DriverOptions;
  readonly #bootIdFile: string;
  #program: Program | undefined;
  #client: DriverClient | undefined;
  #lives = 0;

  private constructor(host: TestHost, options: DriverOptions) {
    this.host = host;
    this.options = options;
    this.#bootIdFile = join(host.dir, "boot-id");
    this.reboot("first");
  }

  static async start(change: Partial<DriverOptions> = {}): Promise<DriverUnderTest> {
    const host = await startTestHost();
    const driver = new DriverUnderTest(host, driverOptions(host, change));
    await driver.launch();
    return driver;
  }

  get client(): DriverClient {
    if (this.#client === undefined) throw new Error("the driver does not run");
    return this.#client;
  }

  async launch(): Promise<void> {
    this.#lives += 1;
    const socket = join(this.host.dir, `driver-${this.#lives}.sock`);
    const optionsFile = join(this.host.dir, "driver-options.json");
    writeFileSync(optionsFile, JSON.stringify(this.options));
    const program = this.host.spawn(`driver-${this.#lives}`, process.execPath, [
      PROGRAM,
      socket,
      optionsFile,
      this.#bootIdFile,
    ]);
    this.#program = program;
    await until("the driver listens", () => program.readLog().includes("ready"));
    this.#client = new DriverClient(`unix:${socket}`, credentials.createInsecure());
  }

  /** Kills the plugin, as a crash would. */
  async kill(): Promise<void> {
    this.#client?.close();
    this.#program?.kill("SIGKILL");
    await this.#program?.exited;
  }

  /** Makes the next start of the driver see another boot of the host. */
  reboot(bootId: string): void {
    writeFileSync(this.#bootIdFile, `${bootId}\n`);
  }

  readLog(): string {
    return this.#program?.readLog() ?? "";
  }

  async close(): Promise<void> {
    await this.kill();
    await this.host.close();
  }

  /** Returns a task with pipes and directories as Nomad creates them. */
  task(options: Partial<TaskOptions>, change: Partial<TaskConfig> = {}): TaskConfig {
    const allocId = randomUUID();
    const name = "web";
    const allocDir = join(this.host.dir, "alloc", allocId);
    for (const dir of ["alloc/logs", `${name}/local`, `${name}/secrets`])
      mkdirSync(join(allocDir, dir), { recursive: true });
    const pipe = (stream: string): string => join(allocDir, "alloc/logs", `.${name}.${stream}.fifo`);
    const [stdoutPath, stderrPath] = [pipe("stdout"), pipe("stderr")];
    execFileSync("mkfifo", ["-m", "600", stdoutPath, stderrPath]);
    return TaskConfig.fromPartial({
      id: `${allocId}/${name}/${randomUUID().slice(0, 8)}`,
      ...{ name, allocId, allocDir, stdoutPath, stderrPath, jobName: "job" },
      env: { NOMAD_ALLOC_DIR: "/alloc", NOMAD_TASK_DIR: "/local", NOMAD_SECRETS_DIR: "/secrets" },
      msgpackDriverConfig: Buffer.from(JSON.stringify(taskOptions({ image: this.host.image, ...options }))),
      ...change,
    });
  }

  async startTask(
    task: TaskConfig,
  ): Promise<{ readonly handle: TaskHandle; readonly response: StartTaskResponse }> {
    const response = await this.call("startTask", { task });
    if (response.handle === undefined) throw new Error("StartTask returned no handle");
    return { handle: response.handle, response };
  }

  async stopAndDestroy(taskId: string): Promise<void> {
    await this.call("destroyTask", { taskId, force: true });
  }

  /** Sends a unary call. Rejects with the ServiceError. */
  call<M extends UnaryMethod>(method: M, request: object): Promise<Responses[M]> {
    return new Promise((resolve, reject) => {
      const run = this.client[method] as unknown as UnaryCall<Responses[M]>;
      run.call(this.client, { ...NOTHING, ...request }, (error, response) =>
        error ? reject(error) : resolve(response),
      );
    });
  }

  /** Starts a WaitTask call that a test can cancel. */
  wait(taskId: string): { readonly call: ClientUnaryCall; readonly response: Promise<WaitTaskResponse> } {
    const { promise, resolve, reject } = Promise.withResolvers<WaitTaskResponse>();
    const call = this.client.waitTask({ taskId }, (error, response) =>
      error ? reject(error) : resolve(response),
    );
    return { call, response: promise };
  }
}

/** Values of fields that requests omit. Fields that a message does not have are not encoded. */
const NOTHING = { signal: "", force: false, hostname: "", isolationSpec: undefined };

type UnaryCall<Response> = (
  request: object,
  callback: (error: ServiceError | null, response: Response) => void,
) => ClientUnaryCall;

interface Responses {
  startTask: StartTaskResponse;
  recoverTask: object;
  waitTask: WaitTaskResponse;
  stopTask: object;
  destroyTask: object;
  inspectTask: InspectTaskResponse;
  signalTask: object;
  execTask: ExecTaskResponse;
  createNetwork: CreateNetworkResponse;
  destroyNetwork: object;
}
type UnaryMethod = keyof Responses;

/** Reads a pipe as Nomad's log collector does. `text` has the content read so far. */
export class PipeReader {
  readonly #fd: number;
  readonly #buffer = Buffer.alloc(64 * 1024);
  #text = "";

  constructor(path: string) {
    this.#fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  }

  get text(): string {
    for (;;) {
      try {
        const bytes = readSync(this.#fd, this.#buffer);
        if (bytes === 0) return this.#text;
        this.#text += this.#buffer.toString("utf8", 0, bytes);
      } catch (error) {
        if (error instanceof Error && "code" in error && error.code === "EAGAIN") return this.#text;
        throw error;
      }
    }
  }

  close(): void {
    closeSync(this.#fd);
  }
}
