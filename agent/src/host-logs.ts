import { join } from "node:path";
import type { Log } from "@forage/common/log";
import type { Clock } from "./clock.ts";
import { LogMaintenance } from "./log-maintenance.ts";
import { ContainerLogs, type LogOf } from "./logs/container-logs.ts";
import { KEPT_LOGS_DIRECTORY, KeptLogs } from "./logs/kept-logs.ts";
import { type LoggedContainer, LogRescue } from "./logs/log-rescue.ts";
import { LogRotator } from "./logs/log-rotator.ts";
import { SocketStreamReader } from "./logs/stream-reader.ts";
import type { NodeLogs } from "./node-logs.ts";
import type { FoundContainer } from "./pods/find-container.ts";
import { HostPodFiles } from "./pods/host-pod-files.ts";
import type { PodSupervisor } from "./pods/pod-supervisor.ts";

export interface HostLogsOptions extends LogUsers {
  readonly dataDir: string;
  /** The limit of all logs together, in bytes. Undefined: a share of the disk. */
  readonly limitBytes: number | undefined;
  readonly clock: Clock;
  readonly log: Log;
}

/** The agent's functions that the maintenance of logs depends on. */
export interface LogUsers {
  readonly supervisor: () => Pick<PodSupervisor, "find" | "statuses">;
  /** Reports whether the disk is currently nearly full. */
  readonly diskIsFull: () => boolean;
}

/** Connects all parts of the agent that handle the logs of containers. */
export class HostLogs implements NodeLogs {
  readonly files: HostPodFiles;
  readonly #options: HostLogsOptions;
  readonly #rotator: LogRotator;
  readonly #upkeep: LogMaintenance;
  readonly #streams: SocketStreamReader;
  readonly #kept: KeptLogs;
  readonly containers: ContainerLogs;

  constructor(options: HostLogsOptions) {
    const { clock, log } = options;
    this.#options = options;
    this.#rotator = new LogRotator({
      clock,
      onGrown: (bytes) => this.files.grown(bytes),
      onError: (path, err) => {
        log.warn({ event: "log-not-bounded", path, err });
        if (isFullDisk(err)) this.#upkeep.suspect();
      },
    });
    this.#streams = new SocketStreamReader(join(options.dataDir, "log-streams"));
    this.#kept = new KeptLogs(join(options.dataDir, KEPT_LOGS_DIRECTORY), {
      clock,
      onError: (err) => log.warn({ event: "logs-not-kept", err }),
    });
    this.files = new HostPodFiles(join(options.dataDir, "pods"), this.#rotator, {
      limitBytes: options.limitBytes,
      onLimit: (logs, limitBytes) =>
        log.warn({ event: "logs-deleted-for-room", logs: logs.length, limitBytes }),
      onError: (err) => log.warn({ event: "logs-not-bounded", err }),
      streams: this.#streams,
      kept: this.#kept,
      onCombined: (path, err) => log.warn({ event: "log-streams-combined", path, err }),
    });
    this.containers = new ContainerLogs({
      rotator: this.#rotator,
      pathOf: (of) => this.#pathOf(of),
      isRunning: ({ podUid, container, attempt }) => {
        const found = options.supervisor().find(podUid, container);
        return found?.attempt === attempt && found.id !== undefined;
      },
    });
    this.#upkeep = new LogMaintenance({
      clock,
      rescue: new LogRescue({
        procDir: "/proc",
        onRescue: (path) => log.warn({ event: "log-written-again-after-full-disk", path }),
      }),
      containers: () => this.#running(),
      pressed: options.diskIsFull,
      onError: (err) => log.warn({ event: "logs-not-rescued", err }),
    });
  }

  async adopt(): Promise<void> {
    await this.#kept.adopt();
    await this.files.adopt().catch((err) => this.#options.log.error({ event: "logs-not-bounded", err }));
    // The disk may have been full while the agent was not running.
    this.#upkeep.suspect();
  }

  findKept(podUid: string, container: string): FoundContainer | undefined {
    return this.#kept.find(podUid, container);
  }

  diskChanged(): void {
    this.#upkeep.suspect();
  }

  async close(): Promise<void> {
    this.#upkeep.close();
    this.#kept.close();
    await this.#rotator.close();
    this.#streams.close();
  }

  #pathOf(of: LogOf): string {
    const { podUid, container, attempt } = of;
    return this.#kept.pathOf(of) ?? this.files.logFile(podUid, container, attempt);
  }

  #running(): readonly LoggedContainer[] {
    const supervisor = this.#options.supervisor();
    return supervisor.statuses().flatMap(({ uid, containers }) =>
      containers.flatMap(({ name }) => {
        const { id, attempt = 0 } = supervisor.find(uid, name) ?? {};
        if (id === undefined) return [];
        return [{ containerId: id, logFile: this.#pathOf({ podUid: uid, container: name, attempt }) }];
      }),
    );
  }
}

function isFullDisk(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "ENOSPC";
}
