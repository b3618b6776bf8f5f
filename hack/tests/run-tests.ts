import { mkdtempSync, rmSync } from "node:fs";
import { cpus, tmpdir } from "node:os";
import { join, relative, resolve } from "node:path";
import { Readable } from "node:stream";
import { run } from "node:test";
import { spec } from "node:test/reporters";
import { pathToFileURL } from "node:url";
import { PROCESSOR_TIMES_VARIABLE, readProcessorTimes } from "./processor-times.ts";
import { type SharingFiles, shareProcesses } from "./share-processes.ts";

export interface TestGroup {
  /** Its name in the summary. */
  readonly name: string;
  /** Absolute, or relative to the root. */
  readonly files: readonly string[];
  /** The number of files that run at a time. */
  readonly concurrency: number;
  /**
   * Whether each file has a separate network, which isolates ports, rules and sysctls of files that run at the same
   * time.
   */
  readonly ownNetwork?: boolean;
  /** Further files, before the others. They share processes with each other, except those that need their own. */
  readonly sharing?: readonly SharingFiles[];
  /** The time for one file. Default: 10 minutes. */
  readonly limitMs?: number;
  /**
   * Files that only compute. They run beside this group and later ones with the remaining processor time, and are shown
   * after all groups.
   */
  readonly beside?: { readonly files: readonly string[]; readonly concurrency: number };
}

export interface RunResult {
  failed: boolean;
  /** The files, or processes of several files, that have ended. */
  readonly files: { readonly path: string; readonly durationMs: number }[];
  /** The groups that have ended. */
  readonly groups: { readonly name: string; readonly durationMs: number; readonly busy: number }[];
}

type TestEvent = Readonly<{ type: string; data: Readonly<Record<string, unknown>> }>;

/** The name of the remaining work when all groups have ended. */
const REST = "simulations after the other tests";
/** The number of files listed. */
const MAX_SLOWEST = 10;
// A test that hangs fails, instead of the whole run.
const TEST_LIMIT_MS = 10 * 60_000;
/** The limit of files that run beside others. They wait for the processor for as long as the others need it. */
const TEST_LIMIT_BESIDE_MS = 40 * 60_000;
const WATCHDOG = pathToFileURL(join(import.meta.dirname, "watchdog.ts")).href;
const OWN_NETWORK = pathToFileURL(join(import.meta.dirname, "enter-own-network.ts")).href;
const WHEN_IDLE = pathToFileURL(join(import.meta.dirname, "run-when-idle.ts")).href;

/** Runs the groups one after another, shows them as one run with one final summary, and returns whether all passed. */
export async function runTests(root: string, groups: readonly TestGroup[]): Promise<boolean> {
  const result: RunResult = { failed: false, files: [], groups: [] };
  const startedMs = performance.now();
  const dir = mkdtempSync(join(tmpdir(), "forage-test-times-"));
  const times = join(dir, "processor-times");
  process.env[PROCESSOR_TIMES_VARIABLE] = times;
  const names = new Map<string, string>();
  const divided = groups.map((group, at) => {
    const shared = shareProcesses(root, group.sharing ?? [], join(dir, `group-${at}`));
    for (const [path, name] of shared.names) names.set(path, name);
    return { ...group, files: [...shared.paths, ...group.files] };
  });
  await new Promise<void>((ended, failed) => {
    const reporter = new spec();
    reporter.on("end", ended).on("error", failed);
    reporter.pipe(process.stdout, { end: false });
    Readable.from(
      mergeRuns(
        runsOf(root, divided).map((run, at) => measured(groups[at]?.name ?? REST, run, result)),
        result,
      ),
    ).pipe(reporter);
  });
  const nameOf = (path: string): string => names.get(path) ?? relative(root, path);
  process.stdout.write(renderBusiest(nameOf, readProcessorTimes(times)));
  process.stdout.write(renderSlowest(nameOf, result, performance.now() - startedMs));
  rmSync(dir, { recursive: true, force: true });
  return !result.failed;
}

/** Passes on a group's events, and adds its duration. */
async function* measured(
  name: string,
  events: AsyncIterable<TestEvent>,
  { groups }: RunResult,
): AsyncGenerator<TestEvent> {
  const startedMs = performance.now();
  const before = processorTimes();
  yield* events;
  const after = processorTimes();
  const busy = (after.busyMs - before.busyMs) / Math.max(after.allMs - before.allMs, 1);
  groups.push({ name, durationMs: performance.now() - startedMs, busy });
}

/** The time of all processors since the machine started, and the part of it in which they were busy. */
function processorTimes(): { readonly busyMs: number; readonly allMs: number } {
  const times = cpus().map((cpu) => cpu.times);
  const allMs = times.reduce((sum, time) => sum + Object.values(time).reduce((a, b) => a + b, 0), 0);
  return { allMs, busyMs: allMs - times.reduce((sum, { idle }) => sum + idle, 0) };
}

/**
 * Returns the runs of the groups. Each starts when it is read. The last one has the events of the files beside the
 * groups, which start with their group and run until all have ended.
 */
export function runsOf(
  root: string,
  groups: readonly Omit<TestGroup, "name">[],
): readonly AsyncGenerator<TestEvent>[] {
  const started: AsyncIterable<unknown>[] = [];
  const runs = groups.map(async function* (group, at) {
    const { files, concurrency, ownNetwork = false, limitMs = TEST_LIMIT_MS, beside } = group;
    const alone = groups.slice(at).every((later) => later.files.length === 0);
    if (beside !== undefined) {
      const timeout = alone ? TEST_LIMIT_MS : TEST_LIMIT_BESIDE_MS;
      const execArgv = alone ? [] : ["--import", WHEN_IDLE];
      started.push(start(root, beside.files, { concurrency: beside.concurrency, timeout, execArgv }));
    }
    const execArgv = ownNetwork ? ["--import", OWN_NETWORK] : [];
    for await (const event of start(root, files, { concurrency, timeout: limitMs, execArgv }))
      yield event as TestEvent;
  });
  const rest = async function* () {
    for (const stream of started) for await (const event of stream) yield event as TestEvent;
  };
  return [...runs, rest()];
}

function start(
  root: string,
  files: readonly string[],
  options: { readonly concurrency: number; readonly timeout: number; readonly execArgv: readonly string[] },
): AsyncIterable<unknown> {
  // Without files, the runner would search for some.
  if (files.length === 0) return Readable.from([]);
  return run({
    ...options,
    cwd: root,
    files: files.map((path) => resolve(root, path)),
    execArgv: [...options.execArgv, "--import", WATCHDOG],
  });
}

/** Yields the runs' events in order. Their final counts ("tests 5", "pass 5", …) follow once, added up, at the end. */
export async function* mergeRuns(
  runs: readonly AsyncIterable<TestEvent>[],
  result: RunResult,
): AsyncGenerator<TestEvent> {
  const totals = new Map<string, number>();
  let summary: TestEvent | undefined;
  for (const events of runs) {
    for await (const event of events) {
      if (event.type === "test:fail" && event.data.todo === undefined) result.failed = true;
      if (event.type === "test:summary" && typeof event.data.file === "string")
        result.files.push({ path: event.data.file, durationMs: Number(event.data.duration_ms) });
      if (event.type === "test:summary" && event.data.file === undefined) {
        // At this event the reporter lists the failures.
        summary = event;
        continue;
      }
      const [, name, count] = isClosing(event)
        ? (/^(\w+) ([\d.]+)$/.exec(String(event.data.message)) ?? [])
        : [];
      if (name === undefined) yield event;
      else totals.set(name, (totals.get(name) ?? 0) + Number(count));
    }
  }
  if (summary) yield summary;
  for (const [name, total] of totals) {
    yield {
      type: "test:diagnostic",
      data: { nesting: 0, message: `${name} ${Math.round(total * 1e3) / 1e3}`, level: "info" },
    };
  }
}

/** Returns the files that took the most processor time, and the sum of all files. */
export function renderBusiest(nameOf: (path: string) => string, times: ReadonlyMap<string, number>): string {
  const busiest = [...times].sort(([, a], [, b]) => b - a).slice(0, MAX_SLOWEST);
  const sumMs = [...times.values()].reduce((sum, ms) => sum + ms, 0);
  const lines = busiest.map(([path, ms]) => `${seconds(ms)}  ${nameOf(path)}`);
  const sum = `${seconds(sumMs)}  the processor times of all files, without containers and their daemons`;
  return ["files with the most processor time", ...lines, sum, ""].join("\n");
}

/** Returns the slowest files and the groups, the duration of the run, and the sum of the durations of all files. */
export function renderSlowest(
  nameOf: (path: string) => string,
  { files, groups }: RunResult,
  tookMs: number,
): string {
  const slowest = files.toSorted((a, b) => b.durationMs - a.durationMs).slice(0, MAX_SLOWEST);
  const lines = slowest.map(({ path, durationMs }) => `${seconds(durationMs)}  ${nameOf(path)}`);
  const parts = groups.map(
    ({ name, durationMs, busy }) =>
      `${seconds(durationMs)}  ${name}, processors busy ${Math.round(busy * 100)} %`,
  );
  const all = `${seconds(tookMs)}  all ${files.length} processes of test files`;
  const sumMs = files.reduce((sum, { durationMs }) => sum + durationMs, 0);
  return ["slowest files", ...lines, ...parts, all, `${seconds(sumMs)}  their times added up`, ""].join("\n");
}

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(1).padStart(7)} s`;
}

function isClosing(event: TestEvent): boolean {
  return event.type === "test:diagnostic" && event.data.nesting === 0 && event.data.file === undefined;
}
