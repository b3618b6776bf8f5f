import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { waitFor } from "../lib/wait-for.ts";

interface Hierarchy {
  readonly mountPoint: string;
  readonly isUnified: boolean;
  /** The group of this process in the hierarchy, below the mount point. */
  readonly own: string;
}

/** The maximum depth of a lab's groups below a mount point. */
const MAX_DEPTH = 4;
const END_LIMIT_MS = 30_000;
const CPUSET_FILES = ["cpuset.cpus", "cpuset.mems"];

/**
 * Makes the group `lab/host` in every hierarchy, and returns the paths. The process that starts a host is written into
 * all of them, so they contain everything of that host, and ending and removing it needs no other record.
 */
export function makeGroups(lab: string, host: string): readonly string[] {
  return hierarchies().map((hierarchy) => {
    // In a unified hierarchy, a group with processes can't give controllers to its children, so the group is made at
    // the top.
    const parent = hierarchy.isUnified ? hierarchy.mountPoint : join(hierarchy.mountPoint, hierarchy.own);
    const labGroup = join(parent, lab);
    const hostGroup = join(labGroup, host);
    for (const [group, above] of [
      [labGroup, parent],
      [hostGroup, labGroup],
    ] as const) {
      mkdirSync(group, { recursive: true });
      if (hierarchy.isUnified) delegateControllers(above);
      inheritCpus(above, group);
    }
    return hostGroup;
  });
}

/** Kills all processes in the groups of the lab, or of one of its hosts, and removes the groups. */
export async function removeGroups(lab: string, host?: string): Promise<void> {
  const groups = hierarchies()
    .flatMap(({ mountPoint }) => findGroups(mountPoint, lab, MAX_DEPTH))
    .map((group) => (host === undefined ? group : join(group, host)));
  await waitFor(
    () => {
      const processes = new Set(groups.flatMap(processesBelow));
      for (const pid of processes) kill(pid);
      return processes.size === 0;
    },
    { what: `all processes of ${host ?? lab} have ended`, limitMs: END_LIMIT_MS },
  );
  await waitFor(() => groups.every(removeGroup), {
    what: `the groups of ${host ?? lab} are removed`,
    limitMs: END_LIMIT_MS,
  });
}

function hierarchies(): readonly Hierarchy[] {
  const own = new Map<string, string>();
  for (const line of readFileSync("/proc/self/cgroup", "utf8").trim().split("\n")) {
    const [, controllers = "", path = "/"] = line.split(":");
    for (const controller of controllers.split(",")) own.set(controller, path);
  }
  return readFileSync("/proc/self/mountinfo", "utf8")
    .split("\n")
    .flatMap((line): Hierarchy[] => {
      const [mount = "", file = ""] = line.split(" - ");
      const mountPoint = mount.split(" ")[4];
      const [type, , options = ""] = file.split(" ");
      if (mountPoint === undefined || !mountPoint.startsWith("/sys/fs/cgroup")) return [];
      if (type === "cgroup2") return [{ mountPoint, isUnified: true, own: own.get("") ?? "/" }];
      if (type !== "cgroup") return [];
      const controller = options.split(",").find((option) => own.has(option));
      return controller === undefined
        ? []
        : [{ mountPoint, isUnified: false, own: own.get(controller) ?? "/" }];
    });
}

function delegateControllers(group: string): void {
  for (const controller of readWords(join(group, "cgroup.controllers"))) {
    try {
      writeFileSync(join(group, "cgroup.subtree_control"), `+${controller}`);
    } catch {
      // This group can't delegate the controller. Hosts work without it.
    }
  }
}

/** Gives a new group of version 1, which has no processor at first, the processors of its parent. */
function inheritCpus(from: string, to: string): void {
  for (const file of CPUSET_FILES) {
    if (!existsSync(join(from, file)) || readWords(join(to, file)).length > 0) continue;
    const [value] = readWords(join(from, file));
    if (value !== undefined) writeFileSync(join(to, file), value);
  }
}

function findGroups(dir: string, name: string, depth: number): string[] {
  if (depth === 0) return [];
  return childrenOf(dir).flatMap((child) =>
    child === name ? [join(dir, child)] : findGroups(join(dir, child), name, depth - 1),
  );
}

function processesBelow(group: string): string[] {
  return [
    ...readWords(join(group, "cgroup.procs")),
    ...childrenOf(group).flatMap((child) => processesBelow(join(group, child))),
  ];
}

/** Reports whether the group is gone. */
function removeGroup(group: string): boolean {
  if (!childrenOf(group).every((child) => removeGroup(join(group, child)))) return false;
  try {
    rmdirSync(group);
    return true;
  } catch {
    return !existsSync(group);
  }
}

function childrenOf(group: string): string[] {
  try {
    return readdirSync(group, { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map(({ name }) => name);
  } catch {
    return [];
  }
}

function readWords(path: string): string[] {
  try {
    return readFileSync(path, "utf8").split(/\s+/).filter(Boolean);
  } catch {
    return [];
  }
}

function kill(pid: string): void {
  try {
    process.kill(Number(pid), "SIGKILL");
  } catch {
    // The process has ended meanwhile.
  }
}
