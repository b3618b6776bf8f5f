import type {
  CreateNetworkRequest,
  CreateNetworkResponse,
  DestroyNetworkRequest,
  DriverServer,
  DriverService,
  DriverTaskEvent,
  ExecTaskRequest,
  ExecTaskResponse,
  ExecTaskStreamingRequest,
  ExecTaskStreamingResponse,
  FingerprintResponse,
  InspectTaskResponse,
  NetworkIsolationSpec,
  StartTaskResponse,
  TaskConfig,
  TaskHandle,
  TaskStats,
  WaitTaskResponse,
} from "@forage/proto/plugins/drivers/proto/driver";
import type { Spec } from "@forage/proto/plugins/shared/hclspec/hcl_spec";
import type { Server } from "@grpc/grpc-js";
import type { TaskOptions } from "./config/task-options.ts";
import { DriverError } from "./driver-error.ts";
import { duplexStream, type OnCallError, serverStream, unary } from "./rpc/handlers.ts";
import { NEWER_CALLS, NEWER_DRIVER_SERVICE, type NewerCapabilities } from "./rpc/newer-calls.ts";

/**
 * Runs tasks. Every method rejects with a `DriverError`, for an unknown task with `taskNotFound()`. A signal aborts
 * when the caller cancels, which never changes the task itself.
 */
export interface TaskDriver {
  /**
   * Starts the task and returns its handle. If it fails, it removes everything it has created. Rejects with
   * ALREADY_EXISTS if `task.id` is in use.
   */
  start(task: TaskConfig, options: TaskOptions, signal: AbortSignal): Promise<StartTaskResponse>;
  /**
   * Adopts the task of the handle. Does nothing for a known task, and rejects if the task is gone. Never waits for the
   * task.
   */
  recover(handle: TaskHandle): Promise<void>;
  /** Resolves when the task has exited. Also works after the exit, until `destroy`. */
  wait(taskId: string, signal: AbortSignal): Promise<WaitTaskResponse>;
  /**
   * Sends the signal (undefined: the image's stop signal or SIGTERM), then SIGKILL after the time limit. Resolves once
   * the task is dead or unknown.
   */
  stop(taskId: string, stop: StopOptions, signal: AbortSignal): Promise<void>;
  /** Removes the task's container and forgets the task. Rejects a running task without `force`. */
  destroy(taskId: string, force: boolean): Promise<void>;
  /** Returns `task`, its `result` and both timestamps in any state, because Nomad's agent crashes without them. */
  inspect(taskId: string): Promise<InspectTaskResponse>;
  /** Yields a sample at once and at each interval. Ends when the task exits. */
  stats(taskId: string, intervalMs: number, signal: AbortSignal): AsyncIterable<TaskStats>;
  /** Yields the events of all tasks until the signal aborts. */
  events(signal: AbortSignal): AsyncIterable<DriverTaskEvent>;
  /** Sends a signal by name, for example `SIGHUP`. */
  signal(taskId: string, signalName: string): Promise<void>;
  /** Runs a command to its end and returns its output. */
  exec(request: ExecTaskRequest, signal: AbortSignal): Promise<ExecTaskResponse>;
  /** Runs a command with streams. The first request must contain `setup`. */
  execStreaming(
    requests: AsyncIterable<ExecTaskStreamingRequest>,
    signal: AbortSignal,
  ): AsyncIterable<ExecTaskStreamingResponse>;
  createNetwork(request: CreateNetworkRequest): Promise<CreateNetworkResponse>;
  destroyNetwork(allocId: string, spec: NetworkIsolationSpec | undefined): Promise<void>;
  /** Stops tracking. Tasks keep running. */
  close(): Promise<void>;
}

export interface StopOptions {
  /** The name of a signal. Undefined: the image's stop signal, or SIGTERM. */
  readonly signalName: string | undefined;
  readonly timeoutMs: number;
}

/** The part of the service that depends on the configuration only. `plugin/` implements it. */
export interface DriverFront {
  taskConfigSchema(): Spec;
  capabilities(): NewerCapabilities;
  /** Yields the health at once and after each change. Ends only when the signal aborts. */
  fingerprint(signal: AbortSignal): AsyncIterable<FingerprintResponse>;
  /** Decodes and validates the msgpack of a job's `config` block. Throws INVALID with every violation. */
  parseTask(msgpack: Uint8Array): TaskOptions;
  /** Returns the task driver, which is opened on first use after SetConfig. Rejects with FAILED_PRECONDITION before. */
  tasks(): Promise<TaskDriver>;
}

/** Registers Nomad's Driver service on the server. */
export function addDriverService(server: Server, front: DriverFront, onError: OnCallError): void {
  const calls: DriverServer = { ...frontCalls(front, onError), ...taskCalls(front, onError) };
  server.addService(NEWER_DRIVER_SERVICE, { ...calls, ...NEWER_CALLS });
}

type FrontCall = "taskConfigSchema" | "capabilities" | "fingerprint";

function frontCalls(front: DriverFront, onError: OnCallError): Pick<DriverServer, FrontCall> {
  return {
    taskConfigSchema: unary("TaskConfigSchema", onError, async () => ({ spec: front.taskConfigSchema() })),
    capabilities: unary("Capabilities", onError, async () => ({ capabilities: front.capabilities() })),
    fingerprint: serverStream("Fingerprint", onError, (_, signal) => front.fingerprint(signal)),
  };
}

type TaskCall = Exclude<keyof typeof DriverService, FrontCall>;

function taskCalls(front: DriverFront, onError: OnCallError): Pick<DriverServer, TaskCall> {
  return {
    startTask: unary("StartTask", onError, async ({ task }, signal) => {
      if (task === undefined) throw new DriverError("INVALID", "StartTask: task is missing");
      const options = front.parseTask(task.msgpackDriverConfig);
      return (await front.tasks()).start(task, options, signal);
    }),
    recoverTask: unary("RecoverTask", onError, async ({ handle }) => {
      if (handle === undefined) throw new DriverError("INVALID", "RecoverTask: handle is missing");
      await (await front.tasks()).recover(handle);
      return {};
    }),
    waitTask: unary("WaitTask", onError, async ({ taskId }, signal) =>
      (await front.tasks()).wait(taskId, signal),
    ),
    stopTask: unary("StopTask", onError, async ({ taskId, timeout, signal: name }, signal) => {
      const stop = { signalName: name || undefined, timeoutMs: durationMs(timeout) };
      await (await front.tasks()).stop(taskId, stop, signal);
      return {};
    }),
    destroyTask: unary("DestroyTask", onError, async ({ taskId, force }) => {
      await (await front.tasks()).destroy(taskId, force);
      return {};
    }),
    inspectTask: unary("InspectTask", onError, async ({ taskId }) => (await front.tasks()).inspect(taskId)),
    taskStats: serverStream("TaskStats", onError, async function* ({ taskId, collectionInterval }, signal) {
      const intervalMs = durationMs(collectionInterval);
      for await (const stats of (await front.tasks()).stats(taskId, intervalMs, signal)) yield { stats };
    }),
    taskEvents: serverStream("TaskEvents", onError, async function* (_, signal) {
      yield* (await front.tasks()).events(signal);
    }),
    ...capabilityCalls(front, onError),
  };
}

type CapabilityCall = "signalTask" | "execTask" | "execTaskStreaming" | "createNetwork" | "destroyNetwork";

/** Returns the handlers of calls that Nomad makes only if the capabilities include them. */
function capabilityCalls(front: DriverFront, onError: OnCallError): Pick<DriverServer, CapabilityCall> {
  return {
    signalTask: unary("SignalTask", onError, async ({ taskId, signal }) => {
      await (await front.tasks()).signal(taskId, signal);
      return {};
    }),
    execTask: unary("ExecTask", onError, async (request, signal) =>
      (await front.tasks()).exec(request, signal),
    ),
    execTaskStreaming: duplexStream("ExecTaskStreaming", onError, async function* (requests, signal) {
      yield* (await front.tasks()).execStreaming(requests, signal);
    }),
    createNetwork: unary("CreateNetwork", onError, async (request) =>
      (await front.tasks()).createNetwork(request),
    ),
    destroyNetwork: unary(
      "DestroyNetwork",
      onError,
      async ({ allocId, isolationSpec }: DestroyNetworkRequest) => {
        await (await front.tasks()).destroyNetwork(allocId, isolationSpec);
        return {};
      },
    ),
  };
}

function durationMs(duration: { readonly seconds: bigint; readonly nanos: number } | undefined): number {
  return duration === undefined ? 0 : Number(duration.seconds) * 1_000 + duration.nanos / 1e6;
}
