import { existsSync, rmSync } from "node:fs";
import { containerdPlaces, removeContainerdRemains } from "../lib/containerd.ts";
import { removeEmptyPlaces } from "../lib/containerd-tasks.ts";
import { endProxies } from "../lib/gateway-remains.ts";
import { unmountBelow } from "../lib/mounts.ts";
import { removeNetworkRemains } from "../lib/network-remains.ts";
import { clearNamespace } from "./clear-namespace.ts";
import { dropHeldAddresses } from "./drop-held-addresses.ts";
import {
  containerdNamespace,
  type Instance,
  instancePaths,
  instanceRunDir,
  readInstance,
} from "./instance.ts";
import { withLock } from "./lock.ts";
import { releasePorts } from "./port-claim.ts";
import { endPrograms } from "./programs.ts";
import type { Progress } from "./progress.ts";

/** Stops and removes everything of the instance in `dataDir`, whatever its state. Idempotent. */
export async function takeDown(dataDir: string, progress: Progress): Promise<void> {
  if (!existsSync(instancePaths(dataDir).record)) {
    progress.say(`nothing of Forage is in ${dataDir}`);
    return;
  }
  await withLock(instancePaths(dataDir).lock, async () => {
    const instance = readInstance(dataDir);
    if (instance) await removeInstance(instance, dataDir, progress);
  });
  progress.say(`nothing of Forage is left in ${dataDir}`);
}

async function removeInstance(instance: Instance, dataDir: string, progress: Progress): Promise<void> {
  const paths = instancePaths(dataDir);
  const namespace = containerdNamespace(instance.id);
  const runDir = instanceRunDir(instance.id);
  await progress.step("agent and coordinator stopped", async () => {
    await endPrograms(paths.programs);
    await endProxies(runDir);
  });
  await progress.step("containers removed", async () => {
    if (instance.containerd.own) await removeContainerdRemains(containerdPlaces(paths.containerd, runDir));
    else await clearNamespace(instance.containerd.address, namespace);
    removeEmptyPlaces(namespace);
  });
  await progress.step("networks removed", async () => {
    await dropHeldAddresses(paths.agentData);
    await removeNetworkRemains(instance.id);
  });
  await progress.step("files removed", async () => {
    await unmountBelow(paths.agentData);
    await unmountBelow(runDir);
    rmSync(runDir, { recursive: true, force: true });
    releasePorts(instance.id);
    // The record is removed last, so an interrupted run can be repeated.
    const { record, lock: _, ...others } = paths;
    for (const path of [...Object.values(others), record]) rmSync(path, { recursive: true, force: true });
  });
}
