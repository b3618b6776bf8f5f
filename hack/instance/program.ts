import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { isAlive, type ProcessIdentity } from "../lib/process-identity.ts";

/** A program that is kept running. */
export interface ProgramSpec {
  readonly name: string;
  readonly file: string;
  readonly args: readonly string[];
  /** Added to the environment. */
  readonly env?: Readonly<Record<string, string>>;
  readonly logPath: string;
  /** Changes with everything that requires a restart: the program itself and its configuration. */
  readonly digest: string;
}

/** The record of a started program. It is kept in a file, so any process can end or supervise the program. */
export interface ProgramRecord {
  readonly spec: ProgramSpec;
  readonly identity: ProcessIdentity;
  /** The number of restarts after an end. */
  readonly restarts: number;
}

export function writeProgramRecord(dir: string, record: ProgramRecord): void {
  mkdirSync(dir, { recursive: true, mode: 0o700 });
  writeJson(recordPath(dir, record.spec.name), record);
}

/** Returns the record of the program's last start, whether or not it is alive. */
export function readProgramRecord(dir: string, name: string): ProgramRecord | undefined {
  return readJson(recordPath(dir, name)) as ProgramRecord | undefined;
}

export function readRunning(dir: string, name: string): ProgramRecord | undefined {
  const record = readProgramRecord(dir, name);
  return record && isAlive(record.identity) ? record : undefined;
}

export function forgetProgram(dir: string, name: string): void {
  rmSync(recordPath(dir, name), { force: true });
}

/** Writes the list of programs to run, in the order of their start. */
export function writePlan(dir: string, plan: readonly ProgramSpec[]): void {
  mkdirSync(dir, { recursive: true, mode: 0o700 });
  writeJson(planPath(dir), plan);
}

export function readPlan(dir: string): readonly ProgramSpec[] {
  return (readJson(planPath(dir)) as readonly ProgramSpec[] | undefined) ?? [];
}

function recordPath(dir: string, name: string): string {
  return join(dir, `${name}.json`);
}

function planPath(dir: string): string {
  return join(dir, "plan.json");
}

function writeJson(path: string, value: unknown): void {
  writeFileSync(`${path}.partial`, JSON.stringify(value));
  renameSync(`${path}.partial`, path);
}

function readJson(path: string): unknown {
  try {
    return JSON.parse(readFileSync(path, "utf8"));
  } catch {
    return undefined;
  }
}
