/** A pod's files on the host: one log file per container and attempt, in a directory of the pod's own. */
export interface PodFiles {
  /** Makes the directories; gives where the attempt's output goes. */
  prepare(podUid: string, container: string, attempt: number): Promise<{ readonly logFile: string }>;
  /** The last lines of an attempt, at most a few KiB; empty if there are none. Never rejects. */
  lastLines(podUid: string, container: string, attempt: number): Promise<string>;
  /** Deletes everything of the pod. Unknown uids are fine. */
  remove(podUid: string): Promise<void>;
}
