import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { LogTimes } from "./log-times.ts";
import type { StoredLog } from "./plan-log-limit.ts";

const LOG_NAME = /^(\d+)\.log$/;

/** Returns the attempts of a container whose logs are in its directory, in any order. */
export async function attemptsIn(dir: string): Promise<number[]> {
  return (await list(dir)).flatMap((name) => {
    const attempt = LOG_NAME.exec(name)?.[1];
    return attempt === undefined ? [] : Number(attempt);
  });
}

/** Returns all logs below a pod's directory. `gone` means that nothing writes to them any more. */
export async function logsOfPod(podDir: string, gone: boolean): Promise<StoredLog[]> {
  const logs: StoredLog[] = [];
  for (const container of await list(podDir)) {
    const dir = join(podDir, container);
    const attempts = await attemptsIn(dir);
    const newest = Math.max(...attempts);
    for (const attempt of attempts) {
      logs.push(await storedLog(join(dir, `${attempt}.log`), gone || attempt < newest));
    }
  }
  return logs;
}

/** Lists a directory. A missing directory, or a file in its place, has no entries. */
export async function list(dir: string): Promise<string[]> {
  try {
    return await readdir(dir);
  } catch (error) {
    if (isAbsent(error)) return [];
    throw error;
  }
}

/** Reports whether a call failed because something is missing, or because a file is where a directory was expected. */
export function isAbsent(error: unknown): boolean {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  return code === "ENOENT" || code === "ENOTDIR";
}

async function storedLog(path: string, superseded: boolean): Promise<StoredLog> {
  let bytes = 0;
  let changedMs = 0;
  for (const file of [path, `${path}.1`, LogTimes.pathOf(path)]) {
    const found = await stat(file).catch(() => undefined);
    // Holes take no disk space.
    bytes += (found?.blocks ?? 0) * 512;
    changedMs = Math.max(changedMs, found?.mtimeMs ?? 0);
  }
  return { path, bytes, changedMs, superseded };
}
