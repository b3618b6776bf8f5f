import { rm } from "node:fs/promises";
import { join } from "node:path";
import type { TaskDependencies } from "./task-dependencies.ts";

/** The parts of a task on the host, to be removed. */
export interface TaskRemains {
  readonly containerId: string | undefined;
  readonly containerName: string;
  /** Undefined if the driver created no network for the task. */
  readonly networkOwner: string | undefined;
}

// Killing and removing a container takes 0.2 s, but containerd may be restarting.
const REMOVE_LIMIT_MS = 120_000;

/** Removes a task's container, network and files. After an error it can be repeated. */
export async function removeTask(
  dependencies: Pick<TaskDependencies, "runtime" | "networks" | "filesDir">,
  { containerId, containerName, networkOwner }: TaskRemains,
): Promise<void> {
  const signal = AbortSignal.timeout(REMOVE_LIMIT_MS);
  if (containerId !== undefined) await dependencies.runtime.remove([containerId], signal);
  if (networkOwner !== undefined) await dependencies.networks.detach(networkOwner);
  await rm(join(dependencies.filesDir, containerName), { recursive: true, force: true });
}
