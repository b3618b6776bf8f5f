import type { ContainerLogs } from "./logs/container-logs.ts";
import type { FoundContainer } from "./pods/find-container.ts";
import type { PodFiles } from "./pods/pod-files.ts";

/** The logs of all containers of the host. The implementation is `HostLogs`. */
export interface NodeLogs {
  readonly files: PodFiles;
  /** The logs of containers, for readers. */
  readonly containers: Pick<ContainerLogs, "read" | "podChanged">;
  /** Adopts the logs of an earlier agent. */
  adopt(): Promise<void>;
  /** Finds a container of a removed pod whose logs are kept. */
  findKept(podUid: string, container: string): FoundContainer | undefined;
  /** Must be called when the disk's free space or size changed. */
  diskChanged(): void;
  close(): Promise<void>;
}
