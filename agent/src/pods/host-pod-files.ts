import { mkdir, open, rm, statfs } from "node:fs/promises";
import { join } from "node:path";
import { getSystemErrorMap } from "node:util";
import { messageOf } from "@forage/common/message-of";
import type { KeptLogs } from "../logs/kept-logs.ts";
import { attemptsIn, isAbsent, list, logsOfPod } from "../logs/log-directories.ts";
import type { LogRotator } from "../logs/log-rotator.ts";
import { defaultLogLimit, planLogLimit, type StoredLog } from "../logs/plan-log-limit.ts";
import type { StreamPipes } from "../logs/stream-places.ts";
import type { StreamReader } from "../logs/stream-reader.ts";
import type { PodFiles, PreparedLog } from "./pod-files.ts";

export interface HostPodFilesOptions {
  /** The limit for the logs of all pods together, in bytes. Undefined: a share of the disk. */
  readonly limitBytes?: number | undefined;
  /** Called when logs were deleted or cut for a limit. */
  readonly onLimit?: (logs: readonly StoredLog[], limitBytes: number) => void;
  readonly onError?: (error: unknown) => void;
  /** The directory of logs of failed pods that are kept. Undefined: they are deleted with their pods. */
  readonly kept?: Pick<KeptLogs, "keep" | "directories">;
  /** Reads separate streams. Undefined: streams are always combined. */
  readonly streams?: StreamReader;
  /** Called with the reason if the streams of a container share one log although they should be separate. */
  readonly onCombined?: (logFile: string, error: unknown) => void;
}

// The number of log lines in a termination: enough for a stack trace, and few enough to send for every pod.
const LAST_LINES_MAX = 20;
const LAST_LINES_MAX_BYTES = 4 * 1024;
// Pod uids and container names become directory names.
const SAFE_NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,199}$/;
// With less free space, writing a container's first lines would fail.
const ROOM_MIN_BYTES = 64 * 1024;
// The share of the limit that may be written before all logs are measured again. Measuring costs one call for each
// file.
const RECOUNT_SHARE = 1 / 32;

/**
 * The pods' files below one directory of the host: `<dir>/<uid>/<container>/<attempt>.log`. Each container keeps the
 * logs of its newest three runs: until a run has started, the run before it is the current one, with a previous one. The
 * rotator bounds each log, and this class bounds all logs together.
 */
export class HostPodFiles implements PodFiles {
  readonly #dir: string;
  readonly #logs: LogRotator;
  readonly #options: HostPodFilesOptions;
  #grownBytes = 0;
  #recountBytes = Number.POSITIVE_INFINITY;
  #limiting: Promise<void> | undefined;

  constructor(dir: string, logs: LogRotator, options: HostPodFilesOptions = {}) {
    this.#dir = dir;
    this.#logs = logs;
    this.#options = options;
  }

  /** Bounds the logs that an earlier agent left. Their containers may have written more in the meantime. */
  async adopt(): Promise<void> {
    for (const { path, superseded } of await this.#stored()) {
      if (superseded) continue;
      this.#logs.keep(path);
      // The stream reader may have to be started, for example after a reboot.
      void this.#options.streams?.sync(path);
    }
    await this.limit();
  }

  async prepare(podUid: string, container: string, attempt: number, apart = false): Promise<PreparedLog> {
    const logFile = this.logFile(podUid, container, attempt);
    const dir = join(this.#podDir(podUid), safe(container));
    try {
      await mkdir(dir, { recursive: true, mode: 0o700 });
      for (const earlier of await attemptsIn(dir)) {
        const path = join(dir, `${earlier}.log`);
        if (earlier < attempt) await this.#options.streams?.end(path);
        if (earlier < attempt - 2) await this.#logs.remove(path);
        else if (earlier < attempt) await this.#logs.release(path);
      }
      await assertRoom(dir);
      // Create the file now, so that followers see its first line; containerd's shim appends to an existing file.
      await using _ = await open(logFile, "a", 0o600);
    } catch (cause) {
      throw new Error(`no log can be written to ${dir}: ${describe(cause)}`, { cause });
    }
    const streamPipes = apart ? await this.#beginStreams(logFile) : undefined;
    this.#logs.keep(logFile);
    return { logFile, ...(streamPipes && { streamPipes }) };
  }

  async lastLines(podUid: string, container: string, attempt: number): Promise<string> {
    try {
      const path = this.logFile(podUid, container, attempt);
      await this.#options.streams?.sync(path);
      return (await this.#logs.lastLines(path, LAST_LINES_MAX, LAST_LINES_MAX_BYTES)).trimEnd();
    } catch {
      return "";
    }
  }

  async remove(podUid: string, keepLogsMs = 0): Promise<void> {
    const podDir = this.#podDir(podUid);
    for (const container of await list(podDir)) {
      const dir = join(podDir, container);
      for (const attempt of await attemptsIn(dir)) {
        await this.#options.streams?.end(join(dir, `${attempt}.log`));
        await this.#logs.release(join(dir, `${attempt}.log`));
      }
    }
    if (keepLogsMs > 0) await this.#options.kept?.keep(podUid, podDir, keepLogsMs);
    await rm(podDir, { recursive: true, force: true });
  }

  async podUids(): Promise<readonly string[]> {
    return (await list(this.#dir)).filter((name) => SAFE_NAME.test(name));
  }

  logFile(podUid: string, container: string, attempt: number): string {
    return join(this.#podDir(podUid), safe(container), `${attempt}.log`);
  }

  /** Counts written bytes. From time to time, measures all logs and deletes the excess. */
  grown(bytes: number): void {
    this.#grownBytes += bytes;
    if (this.#grownBytes >= this.#recountBytes) void this.limit();
  }

  /** Bounds all logs together, now. Never rejects. */
  limit(): Promise<void> {
    this.#limiting ??= this.#limit()
      .catch((error) => this.#options.onError?.(error))
      .finally(() => {
        this.#limiting = undefined;
      });
    return this.#limiting;
  }

  async #beginStreams(logFile: string): Promise<StreamPipes | undefined> {
    const { streams, onCombined } = this.#options;
    try {
      return await streams?.begin(logFile);
    } catch (error) {
      onCombined?.(logFile, error);
      return undefined;
    }
  }

  async #limit(): Promise<void> {
    this.#grownBytes = 0;
    const limitBytes = this.#options.limitBytes ?? defaultLogLimit(await diskBytes(this.#dir));
    this.#recountBytes = limitBytes * RECOUNT_SHARE;
    const { remove, shrink } = planLogLimit(await this.#stored(), limitBytes);
    // A log that can't be deleted or cut must not keep the others from being bounded.
    const onError = (error: unknown): void => this.#options.onError?.(error);
    for (const { path } of remove) await this.#logs.remove(path).catch(onError);
    for (const { path } of shrink) await this.#logs.shrink(path).catch(onError);
    if (remove.length + shrink.length > 0) this.#options.onLimit?.([...remove, ...shrink], limitBytes);
  }

  async #stored(): Promise<StoredLog[]> {
    const logs: StoredLog[] = [];
    for (const uid of await list(this.#dir)) logs.push(...(await logsOfPod(join(this.#dir, uid), false)));
    const kept = (await this.#options.kept?.directories()) ?? [];
    for (const dir of kept) logs.push(...(await logsOfPod(dir, true)));
    return logs;
  }

  #podDir(podUid: string): string {
    return join(this.#dir, safe(podUid));
  }
}

async function diskBytes(dir: string): Promise<number> {
  try {
    const { blocks, bsize } = await statfs(dir);
    return blocks * bsize;
  } catch (error) {
    // There are no pods yet. The first written lines cause another check.
    if (isAbsent(error)) return 0;
    throw error;
  }
}

async function assertRoom(dir: string): Promise<void> {
  const { bfree, bsize } = await statfs(dir);
  if (bfree * bsize < ROOM_MIN_BYTES) throw new Error("the disk is full");
}

/** Returns the error's message without the path and the system call, which don't help operators. */
function describe(error: unknown): string {
  const errno = error instanceof Error && "errno" in error ? Number(error.errno) : Number.NaN;
  const [, text] = getSystemErrorMap().get(errno) ?? [];
  return text ?? messageOf(error);
}

function safe(name: string): string {
  if (!SAFE_NAME.test(name)) throw new Error(`${JSON.stringify(name)} can't be a directory's name`);
  return name;
}
