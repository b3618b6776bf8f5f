import { createHash } from "node:crypto";
import { readlink, rm, stat, symlink } from "node:fs/promises";
import { join } from "node:path";
import type { LogStream } from "./log-entry.ts";

/** The FIFOs to which a container's output goes, by stream. */
export type StreamPipes = Readonly<Record<LogStream, string>>;

/** Returns the directory of the FIFOs of a log. It exists only if the log's streams are separate. */
export function streamsDir(logFile: string): string {
  return `${logFile}.streams`;
}

export function streamPipes(logFile: string): StreamPipes {
  const dir = streamsDir(logFile);
  return { stdout: join(dir, "stdout"), stderr: join(dir, "stderr") };
}

export async function hasStreams(logFile: string): Promise<boolean> {
  try {
    return (await stat(streamsDir(logFile))).isDirectory();
  } catch {
    return false;
  }
}

/** Returns the path of the reader's socket. Beside it is a link for each log that is being read. */
export function readerSocket(dir: string): string {
  return join(dir, "reader.sock");
}

export function linkOf(dir: string, logFile: string): string {
  return join(dir, createHash("sha256").update(logFile).digest("hex").slice(0, 32));
}

/** Records on disk that the log has to be read, so that a new reader continues with it. */
export async function putLink(dir: string, logFile: string): Promise<void> {
  const link = linkOf(dir, logFile);
  if ((await readlink(link).catch(() => "")) === logFile) return;
  await rm(link, { force: true });
  await symlink(logFile, link);
}

/** The agent's request to the reader. Each side sends one JSON line, then the connection ends. */
export interface ReaderRequest {
  /**
   * `follow`: read this log's pipes from now on. `sync`: respond when everything in the pipes is in the log, which is
   * complete if the container has ended. `drop`: `sync`, then stop reading.
   */
  readonly kind: "follow" | "sync" | "drop";
  readonly logFile: string;
}

export interface ReaderAnswer {
  /** Undefined if the request succeeded. */
  readonly error?: string;
}
