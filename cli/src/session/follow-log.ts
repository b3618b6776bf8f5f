import type { ContainerStatus, LogOptions } from "@forage/proto/forage/agent/v1/agent";
import type { LogsResponse, Pod } from "@forage/proto/forage/operator/v1/operator";
import { CallError } from "../client/explain.ts";
import { pause } from "../pause.ts";
import { Overlap } from "./overlap.ts";

export interface FollowLogOptions {
  readonly open: (options: LogOptions) => AsyncIterable<LogsResponse>;
  /** Returns the pod's present state; undefined if it was deleted. */
  readonly readPod: () => Promise<Pod | undefined>;
  /** The name of the container; empty means the main one. */
  readonly container: string;
  readonly log: LogOptions;
  /** Whether to continue with the next run after a restart of the container. */
  readonly restarts: boolean;
  readonly show: (data: Uint8Array) => Promise<void>;
  /** Called when the stream breaks, once until it is open again. */
  readonly onLost: (error: unknown) => void;
  /** Returns a number from 0 to 1, which spreads the attempts of many clients. */
  readonly random: () => number;
  readonly signal: AbortSignal;
}

/** The longest delay between attempts. */
const LOOK_AGAIN_MS = 2_000;
/**
 * The number of lines to read again after a broken stream. They overlap with the shown lines,
 * unless much was written in between.
 */
const RESUME_LINES = 10_000;
/**
 * The time without data after which the log is assumed not to contain the last shown lines any
 * more.
 */
const RESUME_QUIET_MS = 2_000;

/**
 * Shows a container's log until the container or its pod ends. Survives restarts of coordinator and
 * agent and broken connections, without showing anything twice. Rejects with errors for which a
 * retry is useless.
 */
export async function followLog(options: FollowLogOptions): Promise<void> {
  const { signal, container, readPod, show } = options;
  const overlap = new Overlap();
  let log = options.log;
  let shown = false;
  let lost = false;
  let id = runOf(await readPod(), container)?.containerId;
  while (true) {
    const quiet = new Quiet(() => show(overlap.flush()));
    try {
      for await (const { data } of options.open(log)) {
        lost = false;
        shown = true;
        quiet.heard();
        await show(overlap.push(data));
      }
    } catch (error) {
      if (signal.aborted || !(error instanceof CallError) || !(error.passing || shown)) throw error;
      if (!lost && error.passing) options.onLost(error);
      lost = true;
    } finally {
      await quiet.close();
    }
    const run = await nextRun(options, id);
    if (run === undefined) return;
    overlap.restart();
    // All lines of a new run are new.
    const isNewRun = run.containerId !== id;
    log = { ...options.log, since: undefined, tailLines: isNewRun || !shown ? undefined : RESUME_LINES };
    if (!isNewRun && !shown) log = options.log;
    id = run.containerId;
  }
}

/** Waits until there is a run to read; undefined if there will be none. */
async function nextRun(
  { readPod, container, restarts, random, signal }: FollowLogOptions,
  id: string | undefined,
): Promise<ContainerStatus | undefined> {
  while (true) {
    await pause(LOOK_AGAIN_MS * random(), signal);
    try {
      const run = runOf(await readPod(), container);
      if (run === undefined) return undefined;
      if (run.state?.$case === "running" && (run.containerId === id || restarts)) return run;
      if (!restarts) return undefined;
    } catch (error) {
      if (!(error instanceof CallError && error.passing)) throw error;
    }
  }
}

/** Returns the status of the container if it may still write; the main container comes last. */
function runOf(pod: Pod | undefined, container: string): ContainerStatus | undefined {
  const containers = pod?.status?.containers ?? [];
  return container === "" ? containers.at(-1) : containers.find(({ name }) => name === container);
}

/** Calls back once when data has arrived and then stopped for some time. */
class Quiet {
  readonly #run: () => Promise<void>;
  #timer: NodeJS.Timeout | undefined;
  #running: Promise<void> = Promise.resolve();

  constructor(run: () => Promise<void>) {
    this.#run = run;
  }

  heard(): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      this.#running = this.#run();
    }, RESUME_QUIET_MS);
  }

  async close(): Promise<void> {
    if (this.#timer === undefined) return;
    clearTimeout(this.#timer);
    await this.#running;
    await this.#run();
  }
}
