import { rm } from "node:fs/promises";
import { join } from "node:path";
import type { TaskDependencies } from "./task-dependencies.ts";

/** The parts of a task on the host. */
export interface TaskRemains {
  readonly containerId: string | undefined;
  readonly containerName: string;
  /** Undefined: the driver made no network for it. */
  readonly networkOwner: string | undefined;
}

// The kill and the removal of one container take 0.2 s; containerd may be restarting.
const REMOVE_LIMIT_MS = 120_000;

/** Removes a task's container, network and files. Can be repeated after an error. */
export async function removeTask(
  dependencies: Pick<TaskDependencies, "runtime" | "networks" | "filesDir">,
  { containerId, containerName, networkOwner }: TaskRemains,
): Promise<void> {
  const signal = AbortSignal.timeout(REMOVE_LIMIT_MS);
  if (containerId !== undefined) await dependencies.runtime.remove([containerId], signal);
  if (networkOwner !== undefined) await dependencies.networks.detach(networkOwner);
  await rm(join(dependencies.filesDir, containerName), { recursive: true, force: true });
}
