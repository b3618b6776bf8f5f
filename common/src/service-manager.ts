import { execFile } from "node:child_process";
import type { MonotonicClock } from "./clock.ts";

export interface ServiceManagerOptions {
  /** The variables that systemd sets for a unit of type notify. Without them nothing is sent. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly pid: number;
  readonly clock: MonotonicClock;
  /** Returns one line for `systemctl status`. */
  readonly status: () => string;
  /** Sends assignments such as `READY=1`. Calls `done` after success and failure. Default: systemd-notify. */
  readonly send?: (assignments: readonly string[], done: () => void) => void;
}

/** The number of watchdog messages per limit. systemd recommends two. */
const SENDS_PER_LIMIT = 2;
/** The interval of status messages for a unit without a watchdog. */
const STATUS_PERIOD_MS = 30_000;
const STATUS_MAX_CHARS = 200;
const SEND_LIMIT_MS = 10_000;

/**
 * Reports to systemd that the program is ready, that its main loop runs, and its status. If the main loop hangs, the
 * reports stop, and systemd restarts the program.
 */
export class ServiceManager {
  readonly #options: ServiceManagerOptions;
  readonly #periodMs: number;
  readonly #isWatched: boolean;
  #cancel: (() => void) | undefined;
  #isSending = false;
  #sentStatus = "";

  constructor(options: ServiceManagerOptions) {
    this.#options = options;
    const limitMs = watchdogLimitMs(options);
    this.#isWatched = limitMs !== undefined;
    this.#periodMs = limitMs === undefined ? STATUS_PERIOD_MS : limitMs / SENDS_PER_LIMIT;
  }

  /** Reports readiness, and starts to feed the watchdog. */
  ready(): void {
    if (!this.#options.environment.NOTIFY_SOCKET) return;
    this.#send(["READY=1", ...this.#statusChange()]);
    this.#schedule();
  }

  /** Reports that the program is stopping, and ends the reports. */
  stopping(): void {
    if (this.#cancel === undefined) return;
    this.#cancel();
    this.#cancel = undefined;
    this.#send(["STOPPING=1", "STATUS=stopping"]);
  }

  #schedule(): void {
    this.#cancel = this.#options.clock.schedule(this.#periodMs, () => {
      this.#schedule();
      // If sending is slow, the next period repeats this report.
      if (this.#isSending) return;
      const assignments = [...(this.#isWatched ? ["WATCHDOG=1"] : []), ...this.#statusChange()];
      if (assignments.length > 0) this.#send(assignments);
    });
  }

  #statusChange(): string[] {
    const status = oneLine(this.#options.status());
    if (status === this.#sentStatus) return [];
    this.#sentStatus = status;
    return [`STATUS=${status}`];
  }

  #send(assignments: readonly string[]): void {
    this.#isSending = true;
    (this.#options.send ?? sendByProgram)(assignments, () => {
      this.#isSending = false;
    });
  }
}

/** Returns the watchdog's limit. Undefined if there is none, or if it watches another process. */
function watchdogLimitMs({ environment, pid }: ServiceManagerOptions): number | undefined {
  const { WATCHDOG_USEC: limit, WATCHDOG_PID: watched } = environment;
  if (limit === undefined || !/^[1-9]\d{0,15}$/.test(limit)) return undefined;
  return watched === undefined || watched === String(pid) ? Number(limit) / 1_000 : undefined;
}

function oneLine(text: string): string {
  return text.replaceAll(/\s+/g, " ").slice(0, STATUS_MAX_CHARS);
}

/**
 * Sends through systemd's own program, because Node has no Unix datagram sockets. If the program is missing, the unit's
 * start times out.
 */
function sendByProgram(assignments: readonly string[], done: () => void): void {
  execFile("systemd-notify", [...assignments], { timeout: SEND_LIMIT_MS, killSignal: "SIGKILL" }, () =>
    done(),
  );
}
