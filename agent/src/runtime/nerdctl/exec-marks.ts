import { randomBytes } from "node:crypto";
import { readFile } from "node:fs/promises";
import type { Clock } from "../../clock.ts";
import { type ContainerCgroup, readProcesses } from "../cgroup/container-cgroup.ts";

/**
 * A variable in the environment of an exec'd command, which everything that it starts inherits. Nothing else identifies all of
 * them: nerdctl puts every exec into the container's own cgroup, processes that daemonize leave their session and parent, and a
 * wrapper that removed the variable before the command starts would leave nothing to inherit.
 */
export interface ExecMark {
  readonly name: string;
  readonly value: string;
}

const MARK_NAME = "FORAGE_EXEC";

export function newMark(): ExecMark {
  return { name: MARK_NAME, value: randomBytes(16).toString("hex") };
}

// Killing nerdctl leaves its command running in the container. And containerd may still be starting it.
const RECHECK_MS = [0, 50, 200, 500, 1_000] as const;

/** Kills what carries the mark, until nothing has been found for a while or `ended` says that nothing can come any more. */
export async function killMarked(
  cgroup: ContainerCgroup,
  mark: ExecMark,
  clock: Clock,
  ended: () => boolean,
): Promise<void> {
  for (const delayMs of RECHECK_MS) {
    await new Promise<void>((resolve) => clock.schedule(delayMs, resolve));
    const found = await findMarked(cgroup, mark);
    for (const pid of found) kill(pid);
    if (found.length === 0 && ended()) return;
  }
}

/** Commands that write over their environment (a few servers do, to change their title) are not found. */
async function findMarked(cgroup: ContainerCgroup, { name, value }: ExecMark): Promise<readonly number[]> {
  const wanted = `${name}=${value}`;
  const pids = readProcesses(cgroup);
  const environments = await Promise.all(
    pids.map((pid) => readFile(`/proc/${pid}/environ`, "latin1").catch(() => "")),
  );
  return pids.filter((_, i) => environments[i]?.split("\0").includes(wanted));
}

function kill(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // It ended by itself.
  }
}
