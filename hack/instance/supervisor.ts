import { spawn } from "node:child_process";
import { closeSync, mkdirSync, openSync } from "node:fs";
import { dirname } from "node:path";
import { identify, isAlive } from "../lib/process-identity.ts";
import { boundLog } from "./bounded-log.ts";
import { type ProgramSpec, readProgramRecord, readRunning, writeProgramRecord } from "./program.ts";

export interface SupervisorOptions {
  /** The directory of the programs' records. */
  readonly dir: string;
  readonly plan: readonly ProgramSpec[];
  readonly signal: AbortSignal;
}

// The first restart follows at once, but a program that fails again and again must not overload the machine.
const FIRST_DELAY_MS = 200;
const MAX_DELAY_MS = 10_000;
// After this time a running program counts as healthy again.
const STEADY_MS = 30_000;
// Programs of an earlier supervisor have to be polled, and logs grow slowly.
const LOOK_EVERY_MS = 500;
const LOGS_EVERY_MS = 5_000;

/**
 * Keeps the programs running until the signal. The signal leaves them running, for the next supervisor to take over.
 * Their output is written directly to their logs, so they continue if a supervisor dies.
 */
export function supervise({ dir, plan, signal }: SupervisorOptions): void {
  for (const spec of plan) keepRunning(dir, spec, signal, FIRST_DELAY_MS);
  const logs = setInterval(() => {
    for (const { logPath } of plan) boundLog(logPath);
  }, LOGS_EVERY_MS);
  signal.addEventListener("abort", () => clearInterval(logs), { once: true });
}

function keepRunning(dir: string, spec: ProgramSpec, signal: AbortSignal, delayMs: number): void {
  const startedMs = performance.now();
  const again = (): void => {
    if (signal.aborted) return;
    const nextMs =
      performance.now() - startedMs > STEADY_MS ? FIRST_DELAY_MS : Math.min(delayMs * 2, MAX_DELAY_MS);
    const cancel = (): void => clearTimeout(timer);
    const timer = setTimeout(() => {
      signal.removeEventListener("abort", cancel);
      keepRunning(dir, spec, signal, nextMs);
    }, delayMs);
    signal.addEventListener("abort", cancel, { once: true });
  };
  const running = readRunning(dir, spec.name);
  if (!running) {
    start(dir, spec, again);
    return;
  }
  const stopLooking = (): void => clearInterval(look);
  const look = setInterval(() => {
    if (isAlive(running.identity)) return;
    stopLooking();
    signal.removeEventListener("abort", stopLooking);
    again();
  }, LOOK_EVERY_MS);
  signal.addEventListener("abort", stopLooking, { once: true });
}

function start(dir: string, spec: ProgramSpec, onEnd: () => void): void {
  mkdirSync(dirname(spec.logPath), { recursive: true, mode: 0o755 });
  const log = openSync(spec.logPath, "a", 0o640);
  // Settings come from the programs' configuration, not from the environment of the shell that ran hack/up.
  const inherited = Object.entries(process.env).filter(([name]) => !name.startsWith("FORAGE_"));
  const env = { ...Object.fromEntries(inherited), ...spec.env };
  const child = spawn(spec.file, spec.args, { cwd: "/", env, detached: true, stdio: ["ignore", log, log] });
  closeSync(log);
  child.once("error", onEnd);
  child.once("exit", onEnd);
  const identity = child.pid === undefined ? undefined : identify(child.pid);
  if (!identity) return;
  const before = readProgramRecord(dir, spec.name);
  const restarts = before?.spec.digest === spec.digest ? before.restarts + 1 : 0;
  writeProgramRecord(dir, { spec, identity, restarts });
}
