import { readdirSync, readFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";

/** Identifies a process, and distinguishes it from a later one with the same number, in this boot and the next. */
export interface ProcessIdentity {
  readonly pid: number;
  /** Clock ticks after boot, field 22 of /proc/PID/stat. */
  readonly startTicks: string;
  readonly bootId: string;
}

/** Returns the identity of a process; `undefined` if it isn't alive. A zombie counts as dead. */
export function identify(pid: number): ProcessIdentity | undefined {
  const startTicks = readStartTicks(pid);
  return startTicks === undefined ? undefined : { pid, startTicks, bootId: readBootId() };
}

export function isAlive(identity: ProcessIdentity): boolean {
  return identity.bootId === readBootId() && identity.startTicks === readStartTicks(identity.pid);
}

export function readBootId(): string {
  return readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
}

/** Sends SIGTERM, and SIGKILL after `graceMs`. Returns once the process is gone. A recycled pid is not affected. */
export async function endProcess(identity: ProcessIdentity, options: { graceMs: number }): Promise<void> {
  if (!signalProcess(identity, "SIGTERM")) return;
  if (await isGoneWithin(identity, options.graceMs)) return;
  if (!signalProcess(identity, "SIGKILL")) return;
  // A killed process that remains is stuck in the kernel, and nothing can end it.
  await isGoneWithin(identity, 10_000);
}

/** Returns the processes whose command line `matches`. */
export function findProcesses(matches: (argv: readonly string[]) => boolean): ProcessIdentity[] {
  const found: ProcessIdentity[] = [];
  for (const name of readdirSync("/proc")) {
    if (!/^\d+$/.test(name)) continue;
    const argv = (tryRead(`/proc/${name}/cmdline`) ?? "").split("\0");
    if (!matches(argv)) continue;
    const identity = identify(Number(name));
    if (identity) found.push(identity);
  }
  return found;
}

function signalProcess(identity: ProcessIdentity, signal: NodeJS.Signals): boolean {
  if (!isAlive(identity)) return false;
  try {
    process.kill(identity.pid, signal);
    return true;
  } catch {
    return false;
  }
}

async function isGoneWithin(identity: ProcessIdentity, limitMs: number): Promise<boolean> {
  const end = performance.now() + limitMs;
  while (isAlive(identity)) {
    if (performance.now() > end) return false;
    await delay(10);
  }
  return true;
}

function readStartTicks(pid: number): string | undefined {
  const stat = tryRead(`/proc/${pid}/stat`);
  if (stat === undefined) return undefined;
  // The second field is the program's name in parentheses. It may contain spaces and parentheses.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return fields[0] === "Z" || fields[0] === "X" ? undefined : fields[19];
}

function tryRead(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
}
