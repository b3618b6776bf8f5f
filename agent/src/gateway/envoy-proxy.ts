import { open, readdir, readFile, readlink, stat, truncate } from "node:fs/promises";
import { type Clock, pause } from "../clock.ts";
import type { ProxyProgram } from "./proxy-program.ts";

/** Starts Envoy's process. The process must not end with the agent, and no other program may restart it. */
export interface Launcher {
  /** The program's path, or the image. Used in messages. */
  readonly name: string;
  /**
   * Starts the proxy and appends its output to `log`. Calls `ended` when the proxy's end is noticed. Rejects with an
   * error that includes what to do.
   */
  start(args: readonly string[], log: string, ended: () => void): Promise<void>;
  /** Removes what the proxy leaves behind after its end. */
  remove(): Promise<void>;
}

export interface EnvoyProxyOptions {
  readonly launcher: Launcher;
  readonly bootstrap: string;
  /** The file of Envoy's own messages. */
  readonly log: string;
  readonly clock: Clock;
}

const LOG_KEPT_BYTES = 1024 * 1024;
const WORDS_BYTES_MAX = 16 * 1024;
const GONE_WITHIN_MS = 15_000;
const RECHECK_MS = 20;

/**
 * Runs Envoy as a process of this host. The process is found by its command line, which names the agent's
 * configuration. Therefore no record is needed that could be lost or describe another process.
 */
export class EnvoyProxy implements ProxyProgram {
  readonly #options: EnvoyProxyOptions;
  readonly #listeners = new Set<() => void>();
  #pid: number | undefined;

  constructor(options: EnvoyProxyOptions) {
    this.#options = options;
  }

  get name(): string {
    return this.#options.launcher.name;
  }

  async isRunning(): Promise<boolean> {
    if (this.#pid !== undefined && (await this.#isOurs(this.#pid))) return true;
    const [first, ...others] = await this.#find();
    // If two of them ran, an outdated one could answer requests.
    for (const pid of others) kill(pid);
    this.#pid = first;
    return first !== undefined;
  }

  async start(): Promise<void> {
    const { launcher, bootstrap, log } = this.#options;
    await shorten(log);
    const args = [
      ...["--config-path", bootstrap],
      ...["--log-level", "warning", "--file-flush-interval-msec", "1000"],
      // Hot restarts share memory by a number that is the same for the whole host.
      "--disable-hot-restart",
    ];
    await launcher.start(args, log, () => {
      for (const listener of this.#listeners) listener();
    });
  }

  async kill(): Promise<void> {
    const { clock, launcher } = this.#options;
    const deadlineMs = clock.monotonicMs() + GONE_WITHIN_MS;
    while (await this.isRunning()) {
      for (const pid of await this.#find()) kill(pid);
      if (clock.monotonicMs() > deadlineMs) throw new Error("Envoy can't be stopped");
      await pause(clock, RECHECK_MS, new AbortController().signal);
    }
    await launcher.remove();
  }

  async lastWords(): Promise<string> {
    const file = await open(this.#options.log, "r").catch(() => undefined);
    if (file === undefined) return "";
    try {
      const { size } = await file.stat();
      const length = Math.min(size, WORDS_BYTES_MAX);
      const { buffer } = await file.read(Buffer.alloc(length), 0, length, size - length);
      return buffer.toString();
    } finally {
      await file.close();
    }
  }

  onExit(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  async #find(): Promise<number[]> {
    const pids = (await readdir("/proc")).map(Number).filter((pid) => Number.isInteger(pid));
    const found: number[] = [];
    for (const pid of pids) if (await this.#isOurs(pid)) found.push(pid);
    return found;
  }

  /** Reports whether the process is this proxy's Envoy, or the shell that will become it. */
  async #isOurs(pid: number): Promise<boolean> {
    const line = await readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "");
    const words = line.split("\0");
    const at = words.indexOf("--config-path");
    return at > 0 && words[at + 1] === this.#options.bootstrap && (await isOfThisHost(pid));
  }
}

/**
 * Reports whether the process has the agent's user and the host's network. Any user or pod could start a process with
 * the same command line.
 */
async function isOfThisHost(pid: number): Promise<boolean> {
  try {
    const { uid } = await stat(`/proc/${pid}`);
    const [theirs, ours] = await Promise.all(
      [String(pid), "self"].map((process) => readlink(`/proc/${process}/ns/net`)),
    );
    return uid === process.getuid?.() && theirs === ours;
  } catch {
    // The process has ended meanwhile.
    return false;
  }
}

function kill(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // The process has ended by itself.
  }
}

/** Truncates the log. Envoy writes few messages, and old ones are dropped. */
async function shorten(log: string): Promise<void> {
  const kept = await readFile(log).catch(() => undefined);
  if (kept !== undefined && kept.length > LOG_KEPT_BYTES) await truncate(log, 0);
}
