import { readdir, readFile, readlink, realpath } from "node:fs/promises";
import { basename } from "node:path";
import type { Clock } from "../../clock.ts";
import { isContainerId } from "./data-roots.ts";
import { isRuncInit, planShimSweep, type Shim, type ShimChild, type UnusedSince } from "./plan-shim-sweep.ts";

export interface ShimSweeperOptions {
  readonly clock: Clock;
  /** containerd's socket, with or without `unix://`. */
  readonly address: string;
  readonly namespace: string;
  /** Ids of all containers of the namespace, whichever agent made them. */
  readonly listContainers: (signal: AbortSignal) => Promise<ReadonlySet<string>>;
  readonly onEnded: (containerId: string, pid: number) => void;
}

interface Process {
  readonly pid: number;
  readonly parentPid: number;
  readonly startTicks: string;
  readonly argv: readonly string[];
}

// Reading all of /proc costs some 10 ms with 500 processes.
const SWEEP_INTERVAL_MS = 30_000;
/** Other shims may keep their container's programs elsewhere than below themselves, as virtual machines do. */
const SHIM_PROGRAM = "containerd-shim-runc-v2";

/**
 * Ends shims that a restart of containerd left without a container. containerd that ends between the start of a shim and the creation of
 * its task loads the shim again at its next start; removing the container then leaves the shim, 13 MB each, for ever.
 */
export class ShimSweeper {
  readonly #options: ShimSweeperOptions;
  #unusedSince: UnusedSince = new Map();
  #sweptAtMs: number | undefined;

  constructor(options: ShimSweeperOptions) {
    this.#options = options;
  }

  /** Ends shims that have been unused for long. Checks at most every 30 s. `alive` holds the ids that were just listed. */
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
      // The shim first: it would report the end of its child to containerd as that of a container.
      for (const it of [shim, ...shim.children]) await endProcess(it);
      onEnded(shim.containerId, shim.pid);
    }
  }

  /** Shims of our containerd and namespace only. */
  async #shims(): Promise<readonly Shim[]> {
    const processes = await readProcesses();
    const candidates = processes.filter(({ argv }) => basename(argv[0] ?? "") === SHIM_PROGRAM);
    if (candidates.length === 0) return [];
    const ours = await realAddress(this.#options.address);
    const found: Shim[] = [];
    for (const { pid, startTicks, argv } of candidates) {
      const containerId = option(argv, "-id");
      if (!isContainerId(containerId) || option(argv, "-namespace") !== this.#options.namespace) continue;
      if ((await realAddress(option(argv, "-address"))) !== ours) continue;
      const below = processes.filter(({ parentPid }) => parentPid === pid);
      found.push({ pid, startTicks, containerId, children: await Promise.all(below.map(asChild)) });
    }
    return found;
  }
}

function option(argv: readonly string[], name: string): string {
  const at = argv.indexOf(name);
  return at < 0 ? "" : (argv[at + 1] ?? "");
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

/** Undefined once it has ended. */
async function readProcess(pid: number): Promise<Process | undefined> {
  try {
    const [line, stat] = await Promise.all([
      readFile(`/proc/${pid}/cmdline`, "utf8"),
      readFile(`/proc/${pid}/stat`, "latin1"),
    ]);
    // The name in brackets may hold anything.
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

/** Ends the process, unless it has ended and its number is now another one's. */
export async function endProcess({ pid, startTicks }: { pid: number; startTicks: string }): Promise<void> {
  if ((await readProcess(pid))?.startTicks !== startTicks) return;
  try {
    // A shim ignores SIGTERM.
    process.kill(pid, "SIGKILL");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}
