import { mkdir, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import type { Clock } from "../clock.ts";
import type { LogOf } from "./container-logs.ts";
import { attemptsIn, isAbsent, list, logsOfPod } from "./log-directories.ts";

export interface KeptLogsOptions {
  readonly clock: Clock;
  readonly onError: (error: unknown) => void;
  /** The limit for the logs of all kept pods, in bytes. Default: 256 MiB. */
  readonly maxBytes?: number;
}

/** The newest run of a kept pod's container. */
export interface KeptRun {
  readonly container: string;
  readonly attempt: number;
}

interface KeptPod {
  readonly podUid: string;
  readonly dir: string;
  readonly untilMs: number;
  readonly bytes: number;
  /** The newest attempt of each container. */
  readonly attempts: ReadonlyMap<string, number>;
}

/** The name of the directory in the agent's data directory. */
export const KEPT_LOGS_DIRECTORY = "kept-logs";

// A node is part of few failing rollouts at one time, and each keeps a few pods in the whole fleet.
const KEPT_PODS_MAX = 32;
// Enough for the logs of a few containers that write without pause; those of most pods have some kilobytes.
const KEPT_MAX_BYTES = 256 * 1024 * 1024;
// A directory whose end is further in the future was named while the clock was wrong.
const KEEP_MAX_MS = 24 * 60 * 60 * 1000;
// Timers are short, so that a changed clock is noticed.
const CHECK_MAX_MS = 10 * 60 * 1000;
const DIR_NAME = /^(\d{1,15})-([A-Za-z0-9][A-Za-z0-9._-]{0,199})$/;

/**
 * The logs of failed pods that were removed, below one directory: `<dir>/<end in ms>-<uid>/<container>/<attempt>.log`.
 * The directory's name contains everything that a restarted agent needs. If there are too many, the oldest are deleted
 * first.
 */
export class KeptLogs {
  readonly #dir: string;
  readonly #options: KeptLogsOptions;
  readonly #pods = new Map<string, KeptPod>();
  #cancel: (() => void) | undefined;
  #closed = false;

  constructor(dir: string, options: KeptLogsOptions) {
    this.#dir = dir;
    this.#options = options;
  }

  /** Adopts the logs that an earlier agent kept, and deletes expired ones. Never rejects. */
  async adopt(): Promise<void> {
    try {
      for (const name of await list(this.#dir)) await this.#add(name);
      await this.#clean();
    } catch (error) {
      this.#options.onError(error);
    }
  }

  /** Moves a pod's log directory here, if it exists. Never rejects; after an error the directory stays where it is. */
  async keep(podUid: string, podDir: string, keepMs: number): Promise<void> {
    const { clock, onError } = this.#options;
    const name = `${Math.round(clock.nowMs() + Math.min(keepMs, KEEP_MAX_MS))}-${podUid}`;
    try {
      await mkdir(this.#dir, { recursive: true, mode: 0o700 });
      await rename(podDir, join(this.#dir, name));
      await this.#add(name);
      await this.#clean();
    } catch (error) {
      if (!isAbsent(error)) onError(error);
    }
  }

  /** Finds the newest run of a container. Undefined if none is kept. */
  find(podUid: string, container: string): KeptRun | undefined {
    const attempt = this.#pods.get(podUid)?.attempts.get(container);
    return attempt === undefined ? undefined : { container, attempt };
  }

  /** Returns the log's path. Undefined if no log of the container is kept. */
  pathOf({ podUid, container, attempt }: LogOf): string | undefined {
    const pod = this.#pods.get(podUid);
    return pod?.attempts.has(container) ? join(pod.dir, container, `${attempt}.log`) : undefined;
  }

  /** Returns the directories of all kept pods, from the disk. */
  async directories(): Promise<string[]> {
    return (await list(this.#dir)).map((name) => join(this.#dir, name));
  }

  close(): void {
    this.#closed = true;
    this.#cancel?.();
  }

  async #add(name: string): Promise<void> {
    const dir = join(this.#dir, name);
    // A foreign name counts as expired.
    const [, until = "0", podUid = name] = DIR_NAME.exec(name) ?? [];
    const attempts = new Map<string, number>();
    for (const container of await list(dir)) {
      const found = await attemptsIn(join(dir, container));
      if (found.length > 0) attempts.set(container, Math.max(...found));
    }
    const bytes = (await logsOfPod(dir, true)).reduce((sum, log) => sum + log.bytes, 0);
    const earlier = this.#pods.get(podUid);
    if (earlier !== undefined && earlier.dir !== dir) await this.#delete(earlier);
    this.#pods.set(podUid, { podUid, dir, untilMs: Number(until), bytes, attempts });
  }

  /** Deletes expired and excess logs, and checks again when the next one expires. */
  async #clean(): Promise<void> {
    const { clock, maxBytes = KEPT_MAX_BYTES } = this.#options;
    const nowMs = clock.nowMs();
    const newestFirst = [...this.#pods.values()].sort((a, b) => b.untilMs - a.untilMs);
    let count = 0;
    let bytes = 0;
    let nextMs = nowMs + CHECK_MAX_MS;
    for (const pod of newestFirst) {
      const isOver = pod.untilMs <= nowMs || pod.untilMs > nowMs + KEEP_MAX_MS;
      if (isOver || count >= KEPT_PODS_MAX || bytes + pod.bytes > maxBytes) {
        await this.#delete(pod);
        continue;
      }
      count += 1;
      bytes += pod.bytes;
      nextMs = Math.min(nextMs, pod.untilMs);
    }
    this.#cancel?.();
    const again = count > 0 && !this.#closed;
    this.#cancel = again ? clock.schedule(nextMs - nowMs, () => void this.#clean()) : undefined;
  }

  async #delete({ podUid, dir }: KeptPod): Promise<void> {
    this.#pods.delete(podUid);
    // If this directory can't be deleted now, a restarted agent will find it.
    await rm(dir, { recursive: true, force: true }).catch((error) => this.#options.onError(error));
  }
}
