import { basename } from "node:path";
import type { Clock } from "../../clock.ts";
import { runProgram } from "../../programs/run-program.ts";
import { CallLimit } from "../call-limit.ts";
import { type ContainerCgroup, readProcesses } from "../cgroup/container-cgroup.ts";
import { readKernelFile } from "../cgroup/read-kernel-file.ts";
import { type ExecMark, hasMark, hasOwnLimit, newMark } from "./exec-marks.ts";
import { SHIM_PROGRAM, shimOption } from "./shim-arguments.ts";

export interface ExecStartsOptions {
  readonly clock: Clock;
  readonly cgroupOf: (id: string) => Promise<ContainerCgroup | undefined>;
}

interface Ending {
  readonly ended: Promise<unknown>;
}

export interface MarkedExec<P> {
  readonly process: P;
  /** Undefined if the container is not running, has no process in this kernel, or has its own limit on file locks. */
  readonly mark: ExecMark | undefined;
}

interface Start {
  readonly shim: number;
  readonly cgroup: ContainerCgroup;
  readonly mark: ExecMark;
  /** The container's processes before the start. */
  readonly before: ReadonlySet<number>;
}

const CHECK_MS = 20;
const PRLIMIT = {
  env: { PATH: "/usr/sbin:/usr/bin:/sbin:/bin" },
  timeoutMs: 10_000,
  outputBytesMax: 4_096,
} as const;

/**
 * Starts execs whose processes carry a mark. They inherit it from their container's shim, which has the mark until the
 * exec's first process exists. Therefore execs in one container start one after the other.
 */
export class ExecStarts {
  readonly #options: ExecStartsOptions;
  readonly #turns = new Map<string, { readonly limit: CallLimit; users: number }>();

  constructor(options: ExecStartsOptions) {
    this.#options = options;
  }

  async start<P extends Ending>(
    id: string,
    signal: AbortSignal,
    begin: () => Promise<P>,
  ): Promise<MarkedExec<P>> {
    const leave = await this.#enter(id, signal);
    let start: Start | undefined;
    try {
      start = await this.#prepare(id);
      const process = await begin();
      void this.#finish(start, process, leave);
      return { process, mark: start?.mark };
    } catch (error) {
      await unmark(start);
      leave();
      throw error;
    }
  }

  async #enter(id: string, signal: AbortSignal): Promise<() => void> {
    const turn = this.#turns.get(id) ?? { limit: new CallLimit(1), users: 0 };
    this.#turns.set(id, turn);
    turn.users++;
    const forget = () => {
      if (--turn.users === 0) this.#turns.delete(id);
    };
    try {
      const release = await turn.limit.enter(signal);
      return () => {
        release();
        forget();
      };
    } catch (error) {
      forget();
      throw error;
    }
  }

  async #prepare(id: string): Promise<Start | undefined> {
    const cgroup = await this.#options.cgroupOf(id).catch(() => undefined);
    const found = cgroup && findShim(cgroup, id);
    if (cgroup === undefined || found === undefined || hasOwnLimit(found.child)) return undefined;
    const { shim } = found;
    const start = { shim, cgroup, mark: newMark(), before: new Set(readProcesses(cgroup)) };
    return (await setLimit(shim, String(start.mark))) ? start : undefined;
  }

  /**
   * Waits until the shim has started the command or the command has ended. nerdctl runs as long as containerd may still
   * start the command.
   */
  async #finish(start: Start | undefined, process: Ending, leave: () => void): Promise<void> {
    let ended = false;
    const end = () => {
      ended = true;
    };
    const over = process.ended.then(end, end);
    while (start !== undefined && !ended && !isStarted(start)) {
      let cancel = () => {};
      const check = new Promise<void>((resolve) => {
        cancel = this.#options.clock.schedule(CHECK_MS, resolve);
      });
      await Promise.race([over, check]);
      cancel();
    }
    await unmark(start);
    leave();
  }
}

function isStarted({ cgroup, mark, before }: Start): boolean {
  return readProcesses(cgroup).some((pid) => !before.has(pid) && hasMark(pid, mark));
}

/** Removes the mark from the shim. Only execs that the agent has started may inherit it. */
async function unmark(start: Start | undefined): Promise<void> {
  if (start !== undefined) await setLimit(start.shim, "unlimited");
}

/** Sets the soft limit, which requires no privilege to raise hard limits. Reports whether it was set. */
async function setLimit(pid: number, locks: string): Promise<boolean> {
  const { exitCode } = await runProgram("prlimit", [`--pid=${pid}`, `--locks=${locks}:`], PRLIMIT);
  return exitCode === 0;
}

/**
 * Returns the shim of a container and the process that it has started. The shim is the parent of the container's first
 * process.
 */
function findShim(
  cgroup: ContainerCgroup,
  id: string,
): { readonly shim: number; readonly child: number } | undefined {
  for (const pid of readProcesses(cgroup)) {
    const stat = readKernelFile(`/proc/${pid}/stat`) ?? "";
    // The name in brackets may contain any characters.
    const [, parent = ""] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    const argv = (readKernelFile(`/proc/${Number(parent)}/cmdline`) ?? "").split("\0");
    if (basename(argv[0] ?? "") === SHIM_PROGRAM && shimOption(argv, "-id") === id)
      return { shim: Number(parent), child: pid };
  }
  return undefined;
}
