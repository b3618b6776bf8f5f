import { mkdir, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import type { LogKeeper } from "../logs/log-keeper.ts";
import type { PodFiles } from "./pod-files.ts";

// What goes up with a termination: enough for a stack trace, little enough to be sent for every pod.
const LAST_LINES_MAX = 20;
const LAST_LINES_MAX_BYTES = 4 * 1024;
// Uids and container names become directories below our own.
const SAFE_NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,199}$/;
const LOG_NAME = /^(\d+)\.log$/;

/**
 * Pods' files below one directory of the host: `<dir>/<uid>/<container>/<attempt>.log`. Of each container the present log and the
 * one before are there; the keeper bounds both.
 */
export class HostPodFiles implements PodFiles {
  readonly #dir: string;
  readonly #logs: LogKeeper;

  constructor(dir: string, logs: LogKeeper) {
    this.#dir = dir;
    this.#logs = logs;
  }

  /** Bounds again what an earlier run of the agent left: its containers have been writing on. */
  async takeOver(): Promise<void> {
    for (const uid of await list(this.#dir)) {
      for (const container of await list(join(this.#dir, uid))) {
        const dir = join(this.#dir, uid, container);
        const newest = Math.max(0, ...(await attemptsIn(dir)));
        if (newest > 0) this.#logs.keep(join(dir, `${newest}.log`));
      }
    }
  }

  async prepare(podUid: string, container: string, attempt: number): Promise<{ readonly logFile: string }> {
    const logFile = this.logFile(podUid, container, attempt);
    const dir = join(this.#podDir(podUid), safe(container));
    await mkdir(dir, { recursive: true, mode: 0o700 });
    for (const earlier of await attemptsIn(dir)) {
      const path = join(dir, `${earlier}.log`);
      if (earlier < attempt - 1) await this.#logs.remove(path);
      else if (earlier < attempt) await this.#logs.release(path);
    }
    this.#logs.keep(logFile);
    return { logFile };
  }

  async lastLines(podUid: string, container: string, attempt: number): Promise<string> {
    try {
      const path = this.logFile(podUid, container, attempt);
      return (await this.#logs.lastLines(path, LAST_LINES_MAX, LAST_LINES_MAX_BYTES)).trimEnd();
    } catch {
      return "";
    }
  }

  async remove(podUid: string): Promise<void> {
    const podDir = this.#podDir(podUid);
    for (const container of await list(podDir)) {
      const dir = join(podDir, container);
      for (const attempt of await attemptsIn(dir)) await this.#logs.release(join(dir, `${attempt}.log`));
    }
    await rm(podDir, { recursive: true, force: true });
  }

  logFile(podUid: string, container: string, attempt: number): string {
    return join(this.#podDir(podUid), safe(container), `${attempt}.log`);
  }

  #podDir(podUid: string): string {
    return join(this.#dir, safe(podUid));
  }
}

function safe(name: string): string {
  if (!SAFE_NAME.test(name)) throw new Error(`${JSON.stringify(name)} can't be a directory's name`);
  return name;
}

async function attemptsIn(dir: string): Promise<number[]> {
  return (await list(dir)).flatMap((name) => Number(LOG_NAME.exec(name)?.[1] ?? []));
}

async function list(dir: string): Promise<string[]> {
  try {
    return await readdir(dir);
  } catch (error) {
    if (isAbsent(error)) return [];
    throw error;
  }
}

/** Not there, or a file where directories are. */
function isAbsent(error: unknown): boolean {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  return code === "ENOENT" || code === "ENOTDIR";
}
