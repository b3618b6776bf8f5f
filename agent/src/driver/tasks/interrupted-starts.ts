import { rm } from "node:fs/promises";
import { join } from "node:path";
import { pause } from "../../clock.ts";
import { removeTask } from "./remove-task.ts";
import type { TaskDependencies } from "./task-dependencies.ts";

// A nerdctl that outlived its plugin ends within its own time limit.
const WAIT_MS = 60_000;
const CHECK_EVERY_MS = 2_000;

/**
 * Removes the containers of starts that a killed plugin did not finish; Nomad has no handles for them. `names` are the
 * containers' names. A container may still appear if its nerdctl process outlived the plugin.
 */
export async function removeInterrupted(
  dependencies: TaskDependencies,
  names: readonly string[],
): Promise<void> {
  const { clock, log } = dependencies;
  const waiting = new Set(names);
  const giveUpMs = clock.monotonicMs() + WAIT_MS;
  while (waiting.size > 0) {
    const isLast = clock.monotonicMs() >= giveUpMs;
    await removeFound(dependencies, waiting, isLast).catch((error: unknown) =>
      log("warn", "interrupted-starts-not-removed", { error: String(error) }),
    );
    if (isLast) return;
    if (waiting.size > 0) await pause(clock, CHECK_EVERY_MS, new AbortController().signal);
  }
}

async function removeFound(
  dependencies: TaskDependencies,
  waiting: Set<string>,
  alsoMissing: boolean,
): Promise<void> {
  const { runtime, networks, startsDir, log } = dependencies;
  const ids = new Map((await runtime.list(new AbortController().signal)).map(({ name, id }) => [name, id]));
  for (const name of [...waiting]) {
    const containerId = ids.get(name);
    if (containerId === undefined && !alsoMissing) continue;
    await removeTask(dependencies, {
      containerId,
      containerName: name,
      networkOwner: networks.has(name) ? name : undefined,
    });
    log("info", "interrupted-start-removed", { container: name, found: containerId !== undefined });
    await rm(join(startsDir, name), { force: true });
    waiting.delete(name);
  }
}
