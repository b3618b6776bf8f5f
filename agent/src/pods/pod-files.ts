import type { StreamPipes } from "../logs/stream-places.ts";

export interface PreparedLog {
  readonly logFile: string;
  /** What the container writes to instead, where its streams are kept apart. */
  readonly streamPipes?: StreamPipes;
}

/** A pod's files on the host: one log file per container and attempt, in a directory of the pod's own. */
export interface PodFiles {
  /**
   * Makes the directories; gives where the attempt's output goes. With `apart`, stdout and stderr are kept apart unless nobody is there
   * to read them.
   */
  prepare(podUid: string, container: string, attempt: number, apart?: boolean): Promise<PreparedLog>;
  /** The last lines of an attempt, at most a few KiB; empty if there are none. Never rejects. */
  lastLines(podUid: string, container: string, attempt: number): Promise<string>;
  /** Deletes everything of the pod. Unknown uids are fine. */
  remove(podUid: string): Promise<void>;
}
