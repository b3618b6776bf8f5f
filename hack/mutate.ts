#!/usr/bin/env node
import { appendFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { readSources } from "./imports/read-sources.ts";
import { run } from "./lib/run.ts";
import { SetupError } from "./lib/setup-error.ts";
import { nearestTests } from "./mutation/nearest-tests.ts";
import { prepareCheckout } from "./mutation/prepare-checkout.ts";
import { renderTrial, renderTrials } from "./mutation/render-trials.ts";
import { passesTestFile } from "./mutation/run-test-file.ts";
import { sampleChanges } from "./mutation/sample-changes.ts";
import { ChangeTrials, type Trial } from "./mutation/try-changes.ts";
import { readMentions } from "./tests/find-mentions.ts";
import { selectTestFiles } from "./tests/select-test-files.ts";

const USAGE = `usage: node hack/mutate.ts [--seed N] [--count N] [--limit SECONDS] [--simulations] [--out FILE] [FOLDER...]

Changes single lines of the present commit at random, in a copy, and reports the changes that no test notices.

  --seed N         chooses the changes (default 1)
  --count N        the number of changes (default 100)
  --limit SECONDS  the time after which no further test file of a change starts (default 180)
  --simulations    runs the simulations too, after the other tests
  --out FILE       appends a line of JSON for each change, and leaves out the changes that the file has
  FOLDER           only sources below it, such as coordinator/src/link (default: all programs and libraries)

The tests that run no containers notice changes. Those in agent/test/ need root: without it, most of them fail and don't count.`;

const root = join(import.meta.dirname, "..");
const FOLDERS = [
  ...[
    "agent/src",
    "coordinator/src",
    "scheduler/src",
    "cli/src",
    "common/src",
    "identity/src",
    "archive/src",
  ],
  "proto/src",
];
const TEST_SUPPORT = /\.test\.ts$|\/(?:test|conformance)\//;
const TYPES_LIMIT_MS = 600_000;

async function main(): Promise<void> {
  const text = { type: "string" } as const;
  const flag = { type: "boolean" } as const;
  const { values, positionals } = parseArgs({
    options: { seed: text, count: text, limit: text, out: text, simulations: flag, help: flag },
    allowPositionals: true,
  });
  if (values.help) return console.log(USAGE);
  const checkout = mkdtempSync(join(tmpdir(), "forage-mutate-"));
  process.once("exit", () => rmSync(checkout, { recursive: true, force: true }));
  const stop = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM"] as const)
    process.once(signal, () => {
      // Test files run in separate process groups, which the signal doesn't reach.
      stop.abort();
      process.exit(1);
    });
  await prepareCheckout(root, checkout);

  const { modules } = readSources(checkout);
  const folders = positionals.length === 0 ? FOLDERS : positionals;
  const paths = modules
    .map(({ path }) => path)
    .filter((path) => folders.some((it) => path === it || path.startsWith(`${it.replace(/\/$/, "")}/`)))
    .filter((path) => !TEST_SUPPORT.test(path));
  const sources = new Map(paths.map((path) => [path, readFileSync(join(checkout, path), "utf8")]));
  const changes = sampleChanges(sources, {
    seed: wholeNumber("--seed", values.seed ?? "1"),
    count: wholeNumber("--count", values.count ?? "100"),
  });
  const files = selectTestFiles(checkout, []);
  const withoutContainers = files.onHosts.filter((path) => !/\.e2e\.|\/e2e\//.test(path));
  const ofScheduler = files.computing.filter((path) => path.startsWith("scheduler/"));
  const unit = new Set([...files.unit, ...files.processes, ...withoutContainers, ...ofScheduler]);
  const computing = new Set(values.simulations ? files.computing : []);
  const mentions = readMentions(checkout, modules);
  const trials = new ChangeTrials({
    checkout,
    testsOf: (path) => [unit, computing].flatMap((tests) => nearestTests(path, modules, tests, mentions)),
    passes: (test, signal) => passesTestFile(checkout, test, AbortSignal.any([signal, stop.signal])),
    typesAreRight: () => typesAreRight(checkout),
    concurrency: availableParallelism(),
    limitMs: wholeNumber("--limit", values.limit ?? "180") * 1000,
    monotonicMs: () => performance.now(),
  });
  const done: Trial[] = readDone(values.out);
  for (const change of changes) {
    if (done.some((trial) => isSame(trial.change, change))) continue;
    const trial = await trials.try(change);
    done.push(trial);
    console.error(renderTrial(trial));
    if (values.out !== undefined) appendFileSync(values.out, `${JSON.stringify(trial)}\n`);
  }
  console.log(renderTrials(done));
}

function isSame(a: Trial["change"], b: Trial["change"]): boolean {
  return a.path === b.path && a.line === b.line && a.after === b.after;
}

function readDone(out: string | undefined): Trial[] {
  if (out === undefined) return [];
  writeFileSync(out, "", { flag: "a" });
  const lines = readFileSync(out, "utf8").split("\n");
  return lines.filter((line) => line !== "").map((line) => JSON.parse(line) as Trial);
}

async function typesAreRight(checkout: string): Promise<boolean> {
  const args = ["node_modules/typescript/bin/tsc", "-p", "tsconfig.json", "--noEmit", "--incremental"];
  const { exitCode } = await run(
    process.execPath,
    [...args, "--tsBuildInfoFile", "node_modules/.types.json"],
    { cwd: checkout, allowFailure: true, timeoutMs: TYPES_LIMIT_MS },
  );
  return exitCode === 0;
}

function wholeNumber(flag: string, text: string): number {
  if (!/^\d{1,9}$/.test(text)) throw new SetupError("BAD_USAGE", `${flag} must be a whole number`, USAGE);
  return Number(text);
}

try {
  await main();
} catch (error) {
  if (!(error instanceof Error)) throw error;
  console.error(`✗ ${error.message}`);
  if (error instanceof SetupError) console.error(`  what to do: ${error.advice}`);
  process.exitCode = 2;
}
