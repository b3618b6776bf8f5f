import { withLinkedSignal } from "@forage/common/link-signals";
import { messageOf } from "@forage/common/message-of";
import { type Clock, pause } from "../../clock.ts";
import { type ContainerRuntime, RuntimeError, type RuntimeEvent } from "../../runtime/runtime.ts";
import type { DriverLog } from "./driver-log.ts";
import { signalOf, type TaskExit } from "./exit.ts";
import { isAlive, type Processes, type ProcessIdentity } from "./processes.ts";

export interface ExitWatchOptions {
  readonly runtime: Pick<ContainerRuntime, "events" | "inspect" | "oomKills">;
  readonly processes: Processes;
  readonly clock: Clock;
  readonly log: DriverLog;
}

interface Watched {
  readonly process: ProcessIdentity | undefined;
  readonly settle: (exit: TaskExit) => void;
  /** The monotonic time at which its process was first found gone while the runtime reported no exit yet. */
  goneSinceMs?: number;
  oomKilled: boolean;
  settling: boolean;
}

const LISTEN_AGAIN_MS = 1_000;
// Each check reads /proc once per task. It detects exits while the event stream is broken.
const CHECK_EVERY_MS = 2_000;
// containerd reports an exit within milliseconds. After this time, the exit code counts as lost.
const EXIT_CODE_WAIT_MS = 60_000;
const INSPECT_LIMIT_MS = 10_000;
const UNKNOWN_EXIT_CODE = 255;

/**
 * Reports how containers end: by the runtime's events and, if these fail, by the containers' processes. Does nothing
 * while no container is watched.
 */
export class ExitWatch {
  readonly #options: ExitWatchOptions;
  readonly #watched = new Map<string, Watched>();
  readonly #closing = new AbortController();
  #running = false;

  constructor(options: ExitWatchOptions) {
    this.#options = options;
  }

  /**
   * Resolves when the container has ended. Without `process` the container is checked at once, because it may have
   * ended already.
   */
  watch(containerId: string, process: ProcessIdentity | undefined): Promise<TaskExit> {
    return new Promise((settle) => {
      this.#watched.set(containerId, { process, settle, oomKilled: false, settling: false });
      if (process === undefined) void this.#check(containerId);
      this.#run();
    });
  }

  /** Records that the container is removed on purpose. Its promise settles with the exit code of SIGKILL. */
  forget(containerId: string): void {
    this.#watched.get(containerId)?.settle(exitOf(137, this.#options.clock.nowMs(), false));
    this.#watched.delete(containerId);
  }

  /** Stops watching. Promises of watched containers never settle. */
  close(): void {
    this.#closing.abort();
    this.#watched.clear();
  }

  #run(): void {
    if (this.#running || this.#closing.signal.aborted) return;
    this.#running = true;
    void this.#listen();
    void this.#poll();
  }

  async #listen(): Promise<void> {
    const { runtime, clock, log } = this.#options;
    const { signal } = this.#closing;
    while (!signal.aborted) {
      try {
        for await (const event of runtime.events(signal)) this.#handle(event);
      } catch (error) {
        if (!signal.aborted) log("warn", "runtime-events-broken", { error: messageOf(error) });
      }
      await pause(clock, LISTEN_AGAIN_MS, signal);
    }
  }

  async #poll(): Promise<void> {
    const { clock } = this.#options;
    const { signal } = this.#closing;
    while (!signal.aborted) {
      await pause(clock, CHECK_EVERY_MS, signal);
      await this.#checkAll();
    }
  }

  async #checkAll(): Promise<void> {
    const { processes } = this.#options;
    for (const [id, { process }] of [...this.#watched])
      if (process === undefined || !isAlive(processes, process)) await this.#check(id);
  }

  #handle(event: RuntimeEvent): void {
    if (event.type === "listening") return void this.#checkAll();
    const watched = this.#watched.get(event.containerId);
    if (watched === undefined) return;
    if (event.type === "oom") watched.oomKilled = true;
    if (event.type === "exited") void this.#settle(event.containerId, event.exitCode, event.atMs);
    if (event.type === "removed") void this.#check(event.containerId);
  }

  async #check(containerId: string): Promise<void> {
    const { runtime, clock } = this.#options;
    const watched = this.#watched.get(containerId);
    if (watched === undefined || watched.settling || this.#closing.signal.aborted) return;
    const limits = [this.#closing.signal, AbortSignal.timeout(INSPECT_LIMIT_MS)];
    try {
      const found = await withLinkedSignal(limits, (limit) => runtime.inspect(containerId, limit));
      if (found === undefined) return this.#lose(containerId, "another program removed the task's container");
      if (found.state === "exited" && found.exitCode !== undefined)
        return await this.#settle(containerId, found.exitCode, found.finishedAtMs ?? clock.nowMs());
    } catch (error) {
      if (error instanceof RuntimeError && error.code === "NOT_FOUND")
        return this.#lose(containerId, "another program removed the task's container");
    }
    if (watched.process === undefined || isAlive(this.#options.processes, watched.process)) return;
    watched.goneSinceMs ??= clock.monotonicMs();
    if (clock.monotonicMs() - watched.goneSinceMs > EXIT_CODE_WAIT_MS)
      this.#lose(containerId, "the task's process has ended and containerd does not know its exit code");
  }

  async #settle(containerId: string, exitCode: number, atMs: number): Promise<void> {
    const watched = this.#watched.get(containerId);
    if (watched === undefined || watched.settling) return;
    watched.settling = true;
    // The event of an OOM kill may arrive late, but the kernel's counter is available until the container's removal.
    const kills = await this.#options.runtime.oomKills(containerId).catch(() => 0);
    if (!this.#watched.delete(containerId)) return;
    watched.settle(exitOf(exitCode, atMs, exitCode !== 0 && (watched.oomKilled || kills > 0)));
  }

  #lose(containerId: string, error: string): void {
    const watched = this.#watched.get(containerId);
    this.#watched.delete(containerId);
    watched?.settle({ ...exitOf(UNKNOWN_EXIT_CODE, this.#options.clock.nowMs(), watched.oomKilled), error });
  }
}

function exitOf(exitCode: number, atMs: number, oomKilled: boolean): TaskExit {
  return { exitCode, signal: signalOf(exitCode), oomKilled, atMs };
}
