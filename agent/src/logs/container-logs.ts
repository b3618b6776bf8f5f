import type { LogStream } from "./log-entry.ts";
import type { LogRotator } from "./log-rotator.ts";

/** One run of a container. */
export interface LogOf {
  readonly podUid: string;
  readonly container: string;
  readonly attempt: number;
}

export interface LogReadOptions {
  readonly follow: boolean;
  /** The number of lines from the end. Undefined: all lines. */
  readonly tailLines?: number;
  /** Leaves out older lines. Milliseconds since the epoch. */
  readonly sinceMs?: number;
  /** Whether each line starts with its time, RFC 3339 in UTC, and a space. `FROM/TO` if only an interval is known. */
  readonly timestamps?: boolean;
  /** Restricts the lines to one stream. Rejects if the container's streams share one log. */
  readonly stream?: LogStream;
}

export interface ContainerLogsOptions {
  readonly rotator: LogRotator;
  readonly pathOf: (of: LogOf) => string;
  /** Reports whether exactly this run is still writing. */
  readonly isRunning: (of: LogOf) => boolean;
}

/** Reads the logs of containers. A follower ends with the run that it reads. */
export class ContainerLogs {
  readonly #options: ContainerLogsOptions;
  readonly #followers = new Set<{ readonly of: LogOf; readonly ended: AbortController }>();

  constructor(options: ContainerLogsOptions) {
    this.#options = options;
  }

  async *read(of: LogOf, options: LogReadOptions, signal: AbortSignal): AsyncGenerator<Uint8Array> {
    const { rotator, pathOf, isRunning } = this.#options;
    const follower = { of, ended: new AbortController() };
    const follow = options.follow && isRunning(of);
    if (follow) this.#followers.add(follower);
    const { tailLines, sinceMs, timestamps = false, stream } = options;
    const from = {
      ...(tailLines !== undefined && { lines: tailLines }),
      ...(sinceMs !== undefined && { sinceMs }),
      ...(stream !== undefined && { stream }),
    };
    try {
      yield* rotator.tail(pathOf(of), { follow, signal, ended: follower.ended.signal, timestamps, ...from });
    } finally {
      this.#followers.delete(follower);
    }
  }

  /** Must be called after each change of the pod. */
  podChanged(podUid: string): void {
    for (const { of, ended } of this.#followers) {
      if (of.podUid === podUid && !this.#options.isRunning(of)) ended.abort();
    }
  }
}
