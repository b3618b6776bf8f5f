import { existsSync, readdirSync, readFileSync, rmdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { unmountBelow } from "./mounts.ts";
import { endProcess, findProcesses } from "./process-identity.ts";
import { run } from "./run.ts";

export interface TaskPlaces {
  readonly address: string;
  readonly stateDir: string;
  readonly rootDir: string;
}

interface Bundle {
  readonly namespace: string;
  readonly id: string;
  readonly path: string;
}

// runc keeps its state here for all containerd daemons of the host, separated by containerd's namespace.
const RUNC_ROOT = "/run/containerd/runc";
const CGROUP_ROOT = "/sys/fs/cgroup";

/** Removes the remains of containers whose containerd no longer runs. */
export async function removeTasks({ address, stateDir, rootDir }: TaskPlaces): Promise<void> {
  const bundles = findBundles(join(stateDir, "io.containerd.runtime.v2.task"));
  const shimSockets = bundles.flatMap((bundle) => readShimSockets(bundle.path));
  // Shims are ended first. Otherwise they would report the end of a container and wait for an answer.
  const shims = findProcesses(
    (argv) => (argv[0] ?? "").includes("containerd-shim") && argv.includes(address),
  );
  await Promise.all(shims.map((shim) => endProcess(shim, { graceMs: 0 })));
  for (const { namespace, id } of bundles) {
    const runcRoot = join(RUNC_ROOT, namespace);
    if (!existsSync(join(runcRoot, id))) continue;
    await run("runc", ["--root", runcRoot, "delete", "--force", id], { allowFailure: true });
  }
  await unmountBelow(stateDir);
  await unmountBelow(rootDir);
  for (const socket of shimSockets) rmSync(socket, { force: true });
  for (const namespace of new Set(bundles.map((bundle) => bundle.namespace))) removeEmptyPlaces(namespace);
  rmSync(stateDir, { recursive: true, force: true });
}

function findBundles(tasksDir: string): Bundle[] {
  return list(tasksDir).flatMap((namespace) =>
    list(join(tasksDir, namespace)).map((id) => ({ namespace, id, path: join(tasksDir, namespace, id) })),
  );
}

// containerd 1.x writes `address`, 2.x `bootstrap.json`.
function readShimSockets(bundle: string): string[] {
  return ["address", "bootstrap.json"].flatMap((name) => {
    const path = join(bundle, name);
    const text = existsSync(path) ? readFileSync(path, "utf8") : "";
    return [...text.matchAll(/unix:\/\/(\/run\/containerd\/s\/[0-9a-f]{64})/g)].flatMap(
      (match) => match[1] ?? [],
    );
  });
}

/**
 * Removes the namespace's own directories if they are empty, so another containerd with the same namespace loses
 * nothing.
 */
export function removeEmptyPlaces(namespace: string): void {
  const controllers = list(CGROUP_ROOT).map((controller) => join(CGROUP_ROOT, controller, namespace));
  for (const path of [join(RUNC_ROOT, namespace), join(CGROUP_ROOT, namespace), ...controllers]) {
    try {
      rmdirSync(path);
    } catch {
      // The directory is missing, or another containerd uses it.
    }
  }
}

function list(dir: string): string[] {
  try {
    return readdirSync(dir);
  } catch {
    return [];
  }
}
