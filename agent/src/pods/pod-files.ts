import type { StreamPipes } from "../logs/stream-places.ts";

export interface PreparedLog {
  readonly logFile: string;
  /** The container's output instead of the log, if its streams are separate. */
  readonly streamPipes?: StreamPipes;
}

/** A pod's files on the host: one log file per container and attempt, in a directory of the pod's own. */
export interface PodFiles {
  /**
   * Creates the directories and returns the destination of the attempt's output. With `apart`, stdout and stderr are separate
   * unless there is no reader for them.
   */
  prepare(podUid: string, container: string, attempt: number, apart?: boolean): Promise<PreparedLog>;
  /** The last lines of an attempt, at most a few KiB; empty if there are none. Never rejects. */
  lastLines(podUid: string, container: string, attempt: number): Promise<string>;
  /** Deletes everything of the pod; its logs are kept apart for `keepLogsMs`, within limits. Unknown uids are fine. */
  remove(podUid: string, keepLogsMs?: number): Promise<void>;
  /** Returns the uids of all pods that have files. */
  podUids(): Promise<readonly string[]>;
}
