import { createHash } from "node:crypto";
import { readlink, rm, stat, symlink } from "node:fs/promises";
import { join } from "node:path";
import type { LogStream } from "./log-entry.ts";

/** A container's ends of the pipes that its output goes through. Each is a FIFO. */
export type StreamPipes = Readonly<Record<LogStream, string>>;

/** The FIFOs of a log whose streams are kept apart. That the directory is there says that they are. */
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

/** The meeting point of agent and reader: a link for each log that is being read, and the reader's socket. */
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

/** The agent's request to the reader: one JSON line each way, then the connection ends. */
export interface ReaderRequest {
  /**
   * `follow`: read this log's pipes from now on. `sync`: answer when all that is in them is in the log; of a container that has
   * ended that is all there ever was. `drop`: `sync`, then stop.
   */
  readonly kind: "follow" | "sync" | "drop";
  readonly logFile: string;
}

export interface ReaderAnswer {
  /** Undefined: done. */
  readonly error?: string;
}
