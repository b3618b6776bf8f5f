import type { StreamPipes } from "../logs/stream-places.ts";

export interface PreparedLog {
  readonly logFile: string;
  /** The destination of the container's output if its streams are separate; the log is then not used. */
  readonly streamPipes?: StreamPipes;
}

/** The files of pods on the host: one log file per container and attempt, in one directory per pod. */
export interface PodFiles {
  /**
   * Creates the directories and returns the destination of the attempt's output. With `apart`, stdout and stderr are
   * separate if there is a reader for them.
   */
  prepare(podUid: string, container: string, attempt: number, apart?: boolean): Promise<PreparedLog>;
  /** Returns the last lines of an attempt, at most a few KiB; empty if there are none. Never rejects. */
  lastLines(podUid: string, container: string, attempt: number): Promise<string>;
  /** Deletes all files of the pod, but keeps its logs for `keepLogsMs`, within limits. Accepts unknown uids. */
  remove(podUid: string, keepLogsMs?: number): Promise<void>;
  /** Returns the uids of all pods that have files. */
  podUids(): Promise<readonly string[]>;
}
