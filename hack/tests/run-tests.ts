import { cpus } from "node:os";
import { join, relative } from "node:path";
import { Readable } from "node:stream";
import { run } from "node:test";
import { spec } from "node:test/reporters";
import { pathToFileURL } from "node:url";

export interface TestGroup {
  /** Its name in the summary. */
  readonly name: string;
  /** Relative to the root. */
  readonly files: readonly string[];
  /** The number of files that run at a time. */
  readonly concurrency: number;
  /** Each file has a network of its own, so that ports, rules and sysctls of files that run at the same time are apart. */
  readonly ownNetwork?: boolean;
  /** The time for one file. Default: 10 minutes. */
  readonly limitMs?: number;
  /**
   * Files that only compute. They run beside this group and later ones with the processor time that those leave, and are shown after
   * all groups.
   */
  readonly beside?: { readonly files: readonly string[]; readonly concurrency: number };
}

export interface RunResult {
  failed: boolean;
  /** The files that have ended. */
  readonly files: { readonly path: string; readonly durationMs: number }[];
  /** The groups that have ended. */
  readonly groups: { readonly name: string; readonly durationMs: number; readonly busy: number }[];
}

type TestEvent = Readonly<{ type: string; data: Readonly<Record<string, unknown>> }>;

/** The name of what is left to do when all groups have ended. */
const REST = "simulations after the other tests";
/** The number of files listed. */
const MAX_SLOWEST = 10;
// A test that hangs fails, rather than the whole run.
const TEST_LIMIT_MS = 10 * 60_000;
/** Files that run beside others wait for the processor for as long as the others need it. */
const TEST_LIMIT_BESIDE_MS = 40 * 60_000;
const WATCHDOG = pathToFileURL(join(import.meta.dirname, "watchdog.ts")).href;
const OWN_NETWORK = pathToFileURL(join(import.meta.dirname, "enter-own-network.ts")).href;
const WHEN_IDLE = pathToFileURL(join(import.meta.dirname, "run-when-idle.ts")).href;

/** Runs the groups one after the other, shows them as one run with one closing summary, and returns whether all passed. */
export async function runTests(root: string, groups: readonly TestGroup[]): Promise<boolean> {
  const result: RunResult = { failed: false, files: [], groups: [] };
  const startedMs = performance.now();
  await new Promise<void>((resolve, reject) => {
    const reporter = new spec();
    reporter.on("end", resolve).on("error", reject);
    reporter.pipe(process.stdout, { end: false });
    Readable.from(
      mergeRuns(
        runsOf(root, groups).map((run, at) => measured(groups[at]?.name ?? REST, run, result)),
        result,
      ),
    ).pipe(reporter);
  });
  process.stdout.write(renderSlowest(root, result, performance.now() - startedMs));
  return !result.failed;
}

/** Passes a group's events on, and adds what it took. */
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

/** The time of all processors since the machine started, and how much of it they worked. */
function processorTimes(): { readonly busyMs: number; readonly allMs: number } {
  const times = cpus().map((cpu) => cpu.times);
  const allMs = times.reduce((sum, time) => sum + Object.values(time).reduce((a, b) => a + b, 0), 0);
  return { allMs, busyMs: allMs - times.reduce((sum, { idle }) => sum + idle, 0) };
}

/**
 * Returns the runs of the groups, each of which starts when it is read. The last one has the events of the files beside the groups,
 * which start with their group and run until all have ended.
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
  // Without files, the runner would look for some.
  if (files.length === 0) return Readable.from([]);
  return run({
    ...options,
    cwd: root,
    files: files.map((path) => join(root, path)),
    execArgv: [...options.execArgv, "--import", WATCHDOG],
  });
}

/** The runs' events in order; their closing counts ("tests 5", "pass 5", …) come once, added up, at the end. */
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
        // On this one the reporter lists what failed.
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

/** The slowest files and the groups, to see where the time of a run goes, what it took in all, and what the files took together. */
export function renderSlowest(root: string, { files, groups }: RunResult, tookMs: number): string {
  const seconds = (ms: number): string => `${(ms / 1000).toFixed(1).padStart(7)} s`;
  const slowest = files.toSorted((a, b) => b.durationMs - a.durationMs).slice(0, MAX_SLOWEST);
  const lines = slowest.map(({ path, durationMs }) => `${seconds(durationMs)}  ${relative(root, path)}`);
  const parts = groups.map(
    ({ name, durationMs, busy }) =>
      `${seconds(durationMs)}  ${name}, processors busy ${Math.round(busy * 100)} %`,
  );
  const all = `${seconds(tookMs)}  all ${files.length} files`;
  const sumMs = files.reduce((sum, { durationMs }) => sum + durationMs, 0);
  return [
    "slowest files",
    ...lines,
    ...parts,
    all,
    `${seconds(sumMs)}  the times of all files added up`,
    "",
  ].join("\n");
}

function isClosing(event: TestEvent): boolean {
  return event.type === "test:diagnostic" && event.data.nesting === 0 && event.data.file === undefined;
}
