import { linkSignals, streamWithLinkedSignal, withLinkedSignal } from "@forage/common/link-signals";
import {
  type CreateNetworkRequest,
  type CreateNetworkResponse,
  type DriverTaskEvent,
  type ExecTaskRequest,
  type ExecTaskResponse,
  type ExecTaskStreamingRequest,
  type ExecTaskStreamingResponse,
  type InspectTaskResponse,
  NetworkIsolationSpec_NetworkIsolationMode as Mode,
  TaskState as NomadTaskState,
  type StartTaskResponse,
  StartTaskResponse_Result,
  type TaskConfig,
  type TaskHandle,
  type TaskStats,
  type WaitTaskResponse,
} from "@forage/proto/plugins/drivers/proto/driver";
import type { TaskOptions } from "../config/task-options.ts";
import { DriverError, taskNotFound } from "../driver-error.ts";
import type { StopOptions, TaskDriver } from "../driver-service.ts";
import { Counter } from "./counter.ts";
import { execOutput, passInput } from "./exec-streaming.ts";
import { execTask } from "./exec-task.ts";
import { inspectTask, networkOverride, waitResponse } from "./inspect-task.ts";
import { checkRecoverable, stateOfHandle } from "./recover-task.ts";
import { removeTask } from "./remove-task.ts";
import { sampleStats } from "./sample-stats.ts";
import { signalName } from "./signal-name.ts";
import { startTask } from "./start-task.ts";
import { stopTask } from "./stop-task.ts";
import { Task } from "./task.ts";
import type { TaskDependencies } from "./task-dependencies.ts";
import { parseTaskId } from "./task-name.ts";
import { encodeTaskState, TASK_STATE_VERSION, type TaskState } from "./task-state.ts";
import { toDriverError, toStartError } from "./to-driver-error.ts";

// More than the containers that one host runs.
const TASKS_MAX = 4_096;
// Nomad keeps one wait and one statistics stream per task; people and checks open exec sessions.
const WAITS_MAX = 16_384;
const STATS_MAX = 8_192;
const EXECS_MAX = 256;
const NETWORK_LABEL = "forage_network";

interface Starting {
  readonly abort: AbortController;
  readonly ended: Promise<unknown>;
}

/** Runs Nomad's tasks as containers of the runtime that pods use. */
export class RuntimeTaskDriver implements TaskDriver {
  readonly #dependencies: TaskDependencies;
  readonly #tasks = new Map<string, Task>();
  readonly #starting = new Map<string, Starting>();
  /** Tasks that could not be recovered, which Nomad will destroy. */
  readonly #lost = new Map<string, TaskState>();
  readonly #closing = new AbortController();
  readonly #waits = new Counter("WaitTask calls", WAITS_MAX);
  readonly #stats = new Counter("TaskStats streams", STATS_MAX);
  readonly #execs = new Counter("exec sessions", EXECS_MAX);

  constructor(dependencies: TaskDependencies) {
    this.#dependencies = dependencies;
  }

  async start(config: TaskConfig, options: TaskOptions, signal: AbortSignal): Promise<StartTaskResponse> {
    parseTaskId(config.id);
    if (this.#tasks.has(config.id) || this.#starting.has(config.id))
      throw new DriverError("ALREADY_EXISTS", `task ${config.id} was started already`);
    if (this.#tasks.size + this.#starting.size >= TASKS_MAX)
      throw new DriverError("FAILED_PRECONDITION", `the driver runs ${TASKS_MAX} tasks already`, {
        recoverable: true,
      });
    const abort = new AbortController();
    const { signal: until, unlink } = linkSignals(signal, abort.signal, this.#closing.signal);
    const started = startTask(this.#dependencies, config, options, until).finally(unlink);
    const ended = started.then(({ state }) => this.#track(state));
    this.#starting.set(config.id, { abort, ended: ended.catch(() => undefined) });
    try {
      const task = await ended;
      return startResponse(config, task.state);
    } catch (error) {
      throw toStartError(error);
    } finally {
      this.#starting.delete(config.id);
    }
  }

  async recover(handle: TaskHandle): Promise<void> {
    const state = stateOfHandle(handle);
    if (this.#tasks.has(state.id)) return;
    if (this.#tasks.size >= TASKS_MAX)
      throw new DriverError("FAILED_PRECONDITION", `the driver runs ${TASKS_MAX} tasks already`);
    try {
      await checkRecoverable(this.#dependencies, state);
    } catch (error) {
      if (this.#lost.size < TASKS_MAX) this.#lost.set(state.id, state);
      throw error;
    }
    if (this.#tasks.has(state.id)) return;
    this.#dependencies.images.hold(state.image, state.id);
    this.#track(state);
  }

  async wait(taskId: string, signal: AbortSignal): Promise<WaitTaskResponse> {
    const task = this.#find(taskId);
    return this.#waits.during(async () => {
      const exit = await withLinkedSignal([signal, task.forgotten, this.#closing.signal], (until) =>
        untilAborted(task.ended, until),
      );
      // A task that is destroyed while it runs also has an exit.
      const known = exit ?? task.exit;
      if (known !== undefined) return waitResponse(known);
      if (task.forgotten.aborted) throw taskNotFound();
      throw new DriverError("CANCELLED", "WaitTask was cancelled");
    });
  }

  async stop(taskId: string, stop: StopOptions): Promise<void> {
    const task = this.#tasks.get(taskId);
    // Nomad retries a failed stop for minutes, so stopping a task that is gone succeeds.
    if (task === undefined || task.exit !== undefined) return;
    await stopTask(this.#dependencies, task, stop, this.#closing.signal).catch(rethrow);
  }

  async destroy(taskId: string, force: boolean): Promise<void> {
    const starting = this.#starting.get(taskId);
    if (starting !== undefined) {
      if (!force)
        throw new DriverError(
          "FAILED_PRECONDITION",
          "the task is being started: stop it, or destroy it by force",
        );
      starting.abort.abort();
      await starting.ended;
    }
    const task = this.#tasks.get(taskId);
    const lost = this.#lost.get(taskId);
    if (task === undefined && lost === undefined) {
      if (starting !== undefined) return;
      throw taskNotFound();
    }
    if (task !== undefined && task.exit === undefined && !force)
      throw new DriverError("FAILED_PRECONDITION", "the task is running: stop it, or destroy it by force");
    const removal = task?.removal ?? this.#remove(task, task?.state ?? lost);
    if (task !== undefined) task.removal = removal;
    try {
      await removal;
    } catch (error) {
      if (task !== undefined) task.removal = undefined;
      throw toDriverError(error);
    }
  }

  async inspect(taskId: string): Promise<InspectTaskResponse> {
    const task = this.#find(taskId);
    return inspectTask(task.state, task.exit);
  }

  async *stats(taskId: string, intervalMs: number, signal: AbortSignal): AsyncGenerator<TaskStats> {
    const task = this.#find(taskId);
    const leave = this.#stats.enter();
    try {
      yield* streamWithLinkedSignal([signal, this.#closing.signal], (until) =>
        sampleStats(this.#dependencies, task, intervalMs, until),
      );
    } finally {
      leave();
    }
  }

  events(signal: AbortSignal): AsyncIterable<DriverTaskEvent> {
    return streamWithLinkedSignal([signal, this.#closing.signal], (until) =>
      this.#dependencies.events.subscribe(until),
    );
  }

  async signal(taskId: string, name: string): Promise<void> {
    const { state } = this.#running(taskId);
    await this.#dependencies.runtime
      .kill(state.containerId, signalName(name), this.#closing.signal)
      .catch(rethrow);
  }

  async exec({ taskId, command, timeout }: ExecTaskRequest, signal: AbortSignal): Promise<ExecTaskResponse> {
    const { state } = this.#running(taskId);
    const timeoutMs = timeout === undefined ? 0 : Number(timeout.seconds) * 1_000 + timeout.nanos / 1e6;
    const input = { containerId: state.containerId, command: checkCommand(command), timeoutMs };
    const { runtime, clock } = this.#dependencies;
    return this.#execs.during(() =>
      withLinkedSignal([signal, this.#closing.signal], (until) =>
        execTask(runtime, clock, input, until).catch(rethrow),
      ),
    );
  }

  async *execStreaming(
    requests: AsyncIterable<ExecTaskStreamingRequest>,
    signal: AbortSignal,
  ): AsyncGenerator<ExecTaskStreamingResponse> {
    const input = requests[Symbol.asyncIterator]();
    const first = await input.next();
    const setup = first.done ? undefined : first.value.setup;
    if (setup === undefined)
      throw new DriverError("INVALID", "ExecTaskStreaming: the first message must be the setup");
    const { state } = this.#running(setup.taskId);
    const leave = this.#execs.enter();
    const ended = new AbortController();
    const { signal: until, unlink } = linkSignals(signal, this.#closing.signal, ended.signal);
    try {
      const size = first.value?.ttySize;
      const exec = this.#dependencies.runtime.exec(
        state.containerId,
        {
          command: checkCommand(setup.command),
          stdin: true,
          tty: setup.tty,
          ...(size && { columns: size.width, rows: size.height }),
        },
        until,
      );
      exec.exitCode.catch(() => undefined);
      void passInput(input, exec, until).catch(() => undefined);
      yield* execOutput(exec);
    } catch (error) {
      throw toDriverError(error);
    } finally {
      ended.abort();
      unlink();
      leave();
    }
  }

  async createNetwork({ allocId, hostname }: CreateNetworkRequest): Promise<CreateNetworkResponse> {
    const { networks } = this.#dependencies;
    const { sandbox, created } = await networks.attach(allocId, [], this.#closing.signal).catch(rethrow);
    const { address, namespacePath } = sandbox;
    const hostsConfig = { hostname: hostname || allocId.slice(0, 8), address };
    const labels = { [NETWORK_LABEL]: allocId };
    return { isolationSpec: { mode: Mode.GROUP, path: namespacePath, labels, hostsConfig }, created };
  }

  async destroyNetwork(allocId: string): Promise<void> {
    await this.#dependencies.networks.detach(allocId).catch(rethrow);
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await Promise.all([...this.#starting.values()].map(({ ended }) => ended));
    const { helpers, exits, images, networks, runtime } = this.#dependencies;
    await helpers.close();
    exits.close();
    images.close();
    await networks.close();
    await runtime.close();
  }

  #track(state: TaskState): Task {
    const { exits, events } = this.#dependencies;
    const task = new Task(state, exits.watch(state.containerId, state.process));
    this.#tasks.set(state.id, task);
    this.#lost.delete(state.id);
    void task.ended.then(({ oomKilled }) => {
      if (oomKilled)
        events.publish(state, "The kernel killed the task for its memory use", { oom_killed: "true" });
    });
    return task;
  }

  async #remove(task: Task | undefined, state: TaskState | undefined): Promise<void> {
    if (state === undefined) return;
    const { exits, images, options, runtime } = this.#dependencies;
    const keeps = !options.gc.container;
    if (keeps) await runtime.stop(state.containerId, 0, this.#closing.signal);
    const containerId = keeps ? undefined : state.containerId;
    const networkOwner = state.sandbox?.podUid;
    await removeTask(this.#dependencies, { containerId, containerName: state.containerName, networkOwner });
    exits.forget(state.containerId);
    await task?.ended;
    task?.forget();
    images.releaseAll(state.id);
    this.#tasks.delete(state.id);
    this.#lost.delete(state.id);
  }

  #find(taskId: string): Task {
    const task = this.#tasks.get(taskId);
    if (task === undefined) throw taskNotFound();
    return task;
  }

  #running(taskId: string): Task {
    const task = this.#find(taskId);
    if (task.exit !== undefined) throw new DriverError("FAILED_PRECONDITION", "the task is not running");
    return task;
  }
}

function startResponse(config: TaskConfig, state: TaskState): StartTaskResponse {
  const driverState = encodeTaskState(state);
  return {
    result: StartTaskResponse_Result.SUCCESS,
    driverErrorMsg: "",
    handle: { version: TASK_STATE_VERSION, config, state: NomadTaskState.RUNNING, driverState },
    networkOverride: networkOverride(state),
  };
}

function checkCommand(command: readonly string[]): readonly string[] {
  if (command.length > 0 && command[0] !== "") return command;
  throw new DriverError("INVALID", "the command to execute is empty");
}

/** Returns the promise's result, or undefined if the signal aborts first. */
async function untilAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T | undefined> {
  if (signal.aborted) return undefined;
  const { promise: aborted, resolve } = Promise.withResolvers<undefined>();
  const stop = (): void => resolve(undefined);
  signal.addEventListener("abort", stop, { once: true });
  try {
    return await Promise.race([promise, aborted]);
  } finally {
    signal.removeEventListener("abort", stop);
  }
}

function rethrow(error: unknown): never {
  throw toDriverError(error);
}
