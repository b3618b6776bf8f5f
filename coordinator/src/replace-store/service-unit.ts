import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { promisify } from "node:util";
import { messageOf } from "@forage/common/message-of";
import { CoordinatorError } from "../errors.ts";

/** The coordinator as a service. */
export interface ServiceUnit {
  readonly name: string;
  /**
   * Returns the state. `starting` means that the service is not ready yet, or that it fails and is
   * restarted repeatedly.
   */
  state(): Promise<"running" | "starting" | "stopped">;
  /** Stops the service. Resolves once its process has ended. */
  stop(): Promise<void>;
  /** Starts the service. Resolves once it is ready, and rejects if it is not ready in time. */
  start(): Promise<void>;
}

/** Runs systemctl with the arguments, and returns its output. */
export type Systemctl = (...words: readonly string[]) => Promise<string>;

/** The time limit, above the unit's own limits to start and to stop. */
const LIMIT_MS = 180_000;

/** Returns systemctl of this host; undefined if systemd does not run here. */
export function hostSystemctl(): Systemctl | undefined {
  if (!existsSync("/run/systemd/system")) return undefined;
  return async (...words) => {
    try {
      return (await promisify(execFile)("systemctl", words, { timeout: LIMIT_MS })).stdout;
    } catch (cause) {
      const printed = cause instanceof Error && "stderr" in cause ? String(cause.stderr).trim() : "";
      const why = printed === "" ? messageOf(cause) : printed;
      throw new CoordinatorError("UNAVAILABLE", `systemctl ${words.join(" ")}: ${why}`, { cause });
    }
  };
}

/**
 * Returns a systemd unit. It has the type notify, so its start ends when the coordinator is ready.
 */
export function systemdUnit(name: string, systemctl: Systemctl): ServiceUnit {
  return {
    name,
    state: async () => {
      const state = (await systemctl("show", "--property=ActiveState", "--value", name)).trim();
      if (state === "active") return "running";
      return state === "inactive" || state === "failed" ? "stopped" : "starting";
    },
    stop: async () => void (await systemctl("stop", name)),
    start: async () => void (await systemctl("start", name)),
  };
}
