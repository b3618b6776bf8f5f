import { type ChildProcess, spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { open, readdir, readFile, truncate } from "node:fs/promises";
import { type Clock, pause } from "../clock.ts";
import type { RunCommand } from "../network/run-command.ts";
import type { ProxyProgram } from "./proxy-program.ts";

export interface HostProxyOptions {
  /** Envoy's program. */
  readonly program: string;
  readonly bootstrap: string;
  /** Where its own messages go. */
  readonly log: string;
  readonly instance: string;
  /** Whether systemd is there to keep it in a unit of its own: what belongs to the agent's unit ends with it. */
  readonly systemd: boolean;
  readonly run: RunCommand;
  readonly clock: Clock;
}

/** Files that Envoy has open: two for each request under way, one for each service and certificate. */
const OPEN_FILES_MAX = 262_144;
/** In 512 byte blocks: no file may grow beyond 1 GiB, should there be no agent to rotate it. */
const FILE_BLOCKS_MAX = 2_097_152;
const LOG_KEPT_BYTES = 1024 * 1024;
const WORDS_BYTES_MAX = 16 * 1024;
const GONE_WITHIN_MS = 15_000;
const LOOK_AGAIN_MS = 20;

/**
 * Envoy from the host. Which process it is stands nowhere: the one whose command names our configuration. So there is no record
 * that could be lost or be about another process.
 */
export class HostProxy implements ProxyProgram {
  readonly #options: HostProxyOptions;
  readonly #listeners = new Set<() => void>();
  #child: ChildProcess | undefined;
  #pid: number | undefined;

  constructor(options: HostProxyOptions) {
    this.#options = options;
  }

  get name(): string {
    return this.#options.program;
  }

  async isRunning(): Promise<boolean> {
    if (this.#pid !== undefined && (await this.#isOurs(this.#pid))) return true;
    const [first, ...others] = await this.#find();
    // Two of them would answer by turns, one with what was true once.
    for (const pid of others) signal(pid, "SIGKILL");
    this.#pid = first;
    return first !== undefined;
  }

  async start(): Promise<void> {
    const { program, log, instance, systemd, run } = this.#options;
    if (!existsSync(program)) throw new Error(`${program} is not there`);
    await shorten(log);
    // A signal for a file that is full would end it; ignored, only the write fails.
    const script = `trap "" XFSZ; ulimit -f ${FILE_BLOCKS_MAX}; ulimit -n ${OPEN_FILES_MAX} 2>/dev/null || ulimit -n "$(ulimit -H -n)"; exec "$@"`;
    const command = ["/bin/sh", "-c", script, "forage-gateway", program, ...this.#arguments()];
    if (systemd) {
      await run("systemd-run", [
        ...["--quiet", "--collect", `--unit=forage-gateway-${instance}`, "--description=Forage gateway"],
        ...["--property=OOMScoreAdjust=-500", `--property=LimitNOFILE=${OPEN_FILES_MAX}`],
        ...[`--property=StandardError=append:${log}`, "--", ...command],
      ]);
      return;
    }
    await this.#spawn(command, log);
  }

  async kill(): Promise<void> {
    const { clock } = this.#options;
    const deadlineMs = clock.monotonicMs() + GONE_WITHIN_MS;
    while (await this.isRunning()) {
      for (const pid of await this.#find()) signal(pid, "SIGKILL");
      if (clock.monotonicMs() > deadlineMs) throw new Error("Envoy can't be ended");
      await pause(clock, LOOK_AGAIN_MS, new AbortController().signal);
    }
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

  #arguments(): string[] {
    return [
      ...["--config-path", this.#options.bootstrap],
      ...["--log-level", "warning", "--file-flush-interval-msec", "1000"],
      // Restarts of that kind share memory by a number that is the same for all of a host.
      "--disable-hot-restart",
    ];
  }

  async #spawn(command: readonly string[], log: string): Promise<void> {
    const [file = "", ...args] = command;
    const output = await open(log, "a", 0o600);
    try {
      const child = spawn(file, args, {
        detached: true,
        env: { PATH: "/usr/sbin:/usr/bin:/sbin:/bin" },
        stdio: ["ignore", output.fd, output.fd],
      });
      await new Promise<void>((resolve, reject) => {
        child.once("spawn", resolve);
        child.once("error", reject);
      });
      child.on("exit", () => this.#ended(child));
      child.unref();
      this.#child = child;
      this.#pid = child.pid;
    } finally {
      await output.close();
    }
  }

  #ended(child: ChildProcess): void {
    if (this.#child !== child) return;
    this.#child = undefined;
    for (const listener of this.#listeners) listener();
  }

  async #find(): Promise<number[]> {
    const pids = (await readdir("/proc")).map(Number).filter((pid) => Number.isInteger(pid));
    const found: number[] = [];
    for (const pid of pids) if (await this.#isOurs(pid)) found.push(pid);
    return found;
  }

  /** The shell that becomes Envoy counts, one that has ended doesn't. */
  async #isOurs(pid: number): Promise<boolean> {
    const line = await readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "");
    const words = line.split("\0");
    const at = words.indexOf("--config-path");
    return at > 0 && words[at + 1] === this.#options.bootstrap;
  }
}

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch {
    // It has gone by itself.
  }
}

/** Messages are few; those of long ago make room. */
async function shorten(log: string): Promise<void> {
  const kept = await readFile(log).catch(() => undefined);
  if (kept !== undefined && kept.length > LOG_KEPT_BYTES) await truncate(log, 0);
}
