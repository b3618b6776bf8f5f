import { spawn } from "node:child_process";
import { readdirSync } from "node:fs";
import { endProcess, findProcesses, identify } from "../lib/process-identity.ts";
import { SetupError } from "../lib/setup-error.ts";
import {
  forgetProgram,
  type ProgramSpec,
  readPlan,
  readRunning,
  writePlan,
  writeProgramRecord,
} from "./program.ts";

export interface ProgramsOptions {
  /** The directory of the plan and the records. */
  readonly dir: string;
  /** The supervisor's program and the node that runs it. */
  readonly supervisor: { readonly node: string; readonly script: string };
}

const SUPERVISOR = "supervisor";
// Long enough for a coordinator to finish its writes. Containers don't depend on either.
const GRACE_MS = 10_000;

/** Makes exactly these programs run. Unchanged running programs continue. Returns whether anything had to be done. */
export async function runPrograms(options: ProgramsOptions, plan: readonly ProgramSpec[]): Promise<boolean> {
  const { dir } = options;
  const isSame = JSON.stringify(readPlan(dir)) === JSON.stringify(plan);
  if (isSame && readRunning(dir, SUPERVISOR) && plan.every(({ name }) => readRunning(dir, name)))
    return false;
  await endSupervisor(dir);
  for (const name of listRecords(dir)) {
    const desired = plan.find((spec) => spec.name === name);
    const running = readRunning(dir, name);
    if (running && running.spec.digest === desired?.digest) continue;
    if (running) await endProcess(running.identity, { graceMs: GRACE_MS });
    // Earlier deaths of a program don't mean a fault now.
    forgetProgram(dir, name);
  }
  writePlan(dir, plan);
  startSupervisor(options);
  return true;
}

/**
 * Ends the supervisor and the programs, in the reverse order of their start, including those without a record.
 * Idempotent.
 */
export async function endPrograms(dir: string): Promise<void> {
  await endSupervisor(dir);
  const plan = readPlan(dir);
  const names = new Set([...plan.map(({ name }) => name), ...listRecords(dir)].reverse());
  for (const name of names) {
    const running = readRunning(dir, name);
    if (running) await endProcess(running.identity, { graceMs: GRACE_MS });
  }
  for (const spec of plan) {
    const strays = findProcesses((argv) => sameArguments(argv, spec));
    await Promise.all(strays.map((stray) => endProcess(stray, { graceMs: GRACE_MS })));
  }
  for (const name of names) forgetProgram(dir, name);
}

async function endSupervisor(dir: string): Promise<void> {
  const record = readRunning(dir, SUPERVISOR);
  if (record) await endProcess(record.identity, { graceMs: GRACE_MS });
  // This includes a supervisor without a record: two of them would compete for the programs.
  const strays = findProcesses(
    (argv) => argv.at(-2) === dir && (argv.at(-3) ?? "").endsWith("/supervisor.mjs"),
  );
  await Promise.all(strays.map((stray) => endProcess(stray, { graceMs: GRACE_MS })));
  forgetProgram(dir, SUPERVISOR);
}

function startSupervisor({ dir, supervisor }: ProgramsOptions): void {
  // The supervisor does very little, so it needs no more memory.
  const args = ["--max-semi-space-size=1", "--v8-pool-size=1", supervisor.script, dir];
  const child = spawn(supervisor.node, args, { cwd: "/", detached: true, stdio: "ignore" });
  child.on("error", () => {});
  child.unref();
  const identity = child.pid === undefined ? undefined : identify(child.pid);
  if (!identity)
    throw new SetupError("MISSING_TOOL", `${supervisor.node} can't be started`, "run hack/up again");
  const spec = { name: SUPERVISOR, file: supervisor.node, args, logPath: "", digest: "" };
  writeProgramRecord(dir, { spec, identity, restarts: 0 });
}

function listRecords(dir: string): string[] {
  try {
    const names = readdirSync(dir).flatMap((file) => /^([a-z-]+)\.json$/.exec(file)?.[1] ?? []);
    return names.filter((name) => name !== "plan" && name !== SUPERVISOR);
  } catch {
    return [];
  }
}

// The kernel returns the arguments with an empty last one.
function sameArguments(argv: readonly string[], spec: ProgramSpec): boolean {
  return argv[0] === spec.file && argv.slice(1, -1).join("\0") === spec.args.join("\0");
}
