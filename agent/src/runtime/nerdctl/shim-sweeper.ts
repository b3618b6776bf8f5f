import { readdir, readFile, readlink, realpath } from "node:fs/promises";
import { basename } from "node:path";
import type { Clock } from "../../clock.ts";
import { isContainerId } from "./data-roots.ts";
import { isRuncInit, planShimSweep, type Shim, type ShimChild, type UnusedSince } from "./plan-shim-sweep.ts";
import { SHIM_PROGRAM, shimOption } from "./shim-arguments.ts";

export interface ShimSweeperOptions {
  readonly clock: Clock;
  /** The address of containerd's socket, with or without `unix://`. */
  readonly address: string;
  readonly namespace: string;
  /** Lists the ids of all containers in the namespace, including those of other agents. */
  readonly listContainers: (signal: AbortSignal) => Promise<ReadonlySet<string>>;
  readonly onEnded: (containerId: string, pid: number) => void;
}

interface Process {
  readonly pid: number;
  readonly parentPid: number;
  readonly startTicks: string;
  readonly argv: readonly string[];
}

// Reading all of /proc takes about 10 ms with 500 processes.
const SWEEP_INTERVAL_MS = 30_000;

/**
 * Ends shims that have lost their container in a restart of containerd. If containerd ends between the start of a shim
 * and the creation of its task, it loads the shim again at its next start. Removing the container then leaves the shim
 * running for ever, with 13 MB.
 */
export class ShimSweeper {
  readonly #options: ShimSweeperOptions;
  #unusedSince: UnusedSince = new Map();
  #sweptAtMs: number | undefined;

  constructor(options: ShimSweeperOptions) {
    this.#options = options;
  }

  /**
   * Ends shims that have been unused for a while. Checks at most every 30 s. `alive` holds the ids of the latest
   * listing.
   */
  async sweep(alive: ReadonlySet<string>, signal: AbortSignal): Promise<void> {
    const { clock, listContainers, onEnded } = this.#options;
    const nowMs = clock.monotonicMs();
    if (this.#sweptAtMs !== undefined && nowMs - this.#sweptAtMs < SWEEP_INTERVAL_MS) return;
    this.#sweptAtMs = nowMs;
    const shims = (await this.#shims()).filter(({ containerId }) => !alive.has(containerId));
    if (shims.length === 0) {
      this.#unusedSince = new Map();
      return;
    }
    const plan = planShimSweep(shims, await listContainers(signal), this.#unusedSince, nowMs);
    this.#unusedSince = plan.unusedSince;
    for (const shim of plan.end) {
      // End the shim first; otherwise it would report the end of its child to containerd as the container's exit.
      for (const it of [shim, ...shim.children]) await endProcess(it);
      onEnded(shim.containerId, shim.pid);
    }
  }

  /** Returns the shims of this containerd and namespace. */
  async #shims(): Promise<readonly Shim[]> {
    const processes = await readProcesses();
    const candidates = processes.filter(({ argv }) => basename(argv[0] ?? "") === SHIM_PROGRAM);
    if (candidates.length === 0) return [];
    const ours = await realAddress(this.#options.address);
    const found: Shim[] = [];
    for (const { pid, startTicks, argv } of candidates) {
      const containerId = shimOption(argv, "-id");
      if (!isContainerId(containerId) || shimOption(argv, "-namespace") !== this.#options.namespace) continue;
      if ((await realAddress(shimOption(argv, "-address"))) !== ours) continue;
      const below = processes.filter(({ parentPid }) => parentPid === pid);
      found.push({ pid, startTicks, containerId, children: await Promise.all(below.map(asChild)) });
    }
    return found;
  }
}

async function realAddress(address: string): Promise<string> {
  const path = address.replace(/^unix:\/\//, "");
  return realpath(path).catch(() => path);
}

async function readProcesses(): Promise<readonly Process[]> {
  const names = (await readdir("/proc")).filter((name) => /^\d+$/.test(name));
  const found = await Promise.all(names.map((name) => readProcess(Number(name))));
  return found.filter((it) => it !== undefined);
}

/** Returns the process, or undefined if it has ended. */
async function readProcess(pid: number): Promise<Process | undefined> {
  try {
    const [line, stat] = await Promise.all([
      readFile(`/proc/${pid}/cmdline`, "utf8"),
      readFile(`/proc/${pid}/stat`, "latin1"),
    ]);
    // The name in brackets may contain any characters.
    const [state, parent, ...fields] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    if (state === "Z" || state === "X") return undefined;
    return { pid, parentPid: Number(parent), startTicks: fields[17] ?? "", argv: line.split("\0") };
  } catch {
    return undefined;
  }
}

async function asChild({ pid, startTicks, argv }: Process): Promise<ShimChild> {
  const program = await readlink(`/proc/${pid}/exe`).catch(() => "");
  return { pid, startTicks, unstarted: isRuncInit(program, argv) };
}

/** Kills the process, unless it has ended and its pid belongs to another process. */
export async function endProcess({ pid, startTicks }: { pid: number; startTicks: string }): Promise<void> {
  if ((await readProcess(pid))?.startTicks !== startTicks) return;
  try {
    // A shim ignores SIGTERM.
    process.kill(pid, "SIGKILL");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}
