import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { promisify } from "node:util";
import { messageOf } from "@forage/common/message-of";
import { CoordinatorError } from "../errors.ts";

/** The coordinator as a service. */
export interface ServiceUnit {
  readonly name: string;
  /** `starting`: it is not ready yet, or it fails and is started again and again. */
  state(): Promise<"running" | "starting" | "stopped">;
  /** Resolves once its process has ended. */
  stop(): Promise<void>;
  /** Resolves once it is ready, and rejects if it isn't in time. */
  start(): Promise<void>;
}

/** Runs systemctl with the words and returns what it prints. */
export type Systemctl = (...words: readonly string[]) => Promise<string>;

/** Above the unit's own limits to start and to stop. */
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

/** Returns the unit of systemd. The unit is of the type notify, so that its start ends when the coordinator is ready. */
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
