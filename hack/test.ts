#!/usr/bin/env node
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { readSources } from "./imports/read-sources.ts";
import { ensureEnvoy } from "./lib/envoy.ts";
import { installMissing, TEST_TOOLS, TOOLS } from "./lib/host-tools.ts";
import { ensureNerdctl } from "./lib/nerdctl.ts";
import { SetupError } from "./lib/setup-error.ts";
import { changedFiles } from "./tests/changed-files.ts";
import { changedTestFiles } from "./tests/changed-test-files.ts";
import { runTests } from "./tests/run-tests.ts";
import { selectTestFiles, type TestFiles } from "./tests/select-test-files.ts";

const root = join(import.meta.dirname, "..");

async function main(): Promise<boolean> {
  const { base, rest } = takeBase(process.argv.slice(2));
  const { values, positionals } = parseArgs({
    args: rest,
    options: { unit: { type: "boolean" }, e2e: { type: "boolean" } },
    allowPositionals: true,
  });
  const both = values.unit === values.e2e;
  const { unit, processes, onHosts } = await selected(positionals, base);
  const groups = [
    {
      files: [...(both || values.unit ? unit : []), ...(both || values.e2e ? processes : [])],
      concurrency: availableParallelism(),
    },
    // Each has a containerd of its own, and some measure how fast things go: one after the other.
    { files: both || values.e2e ? onHosts : [], concurrency: 1 },
  ];
  if (groups.every(({ files }) => files.length === 0)) {
    if (base !== undefined) return true;
    throw new SetupError("BAD_USAGE", "no test file matches", "hack/test --help");
  }
  if ((both || values.e2e) && processes.length + onHosts.length > 0) await prepareHost();
  return runTests(root, groups);
}

/** Takes `--changed [BASE]` out of the arguments. */
function takeBase(args: readonly string[]): { readonly base: string | undefined; readonly rest: string[] } {
  const at = args.indexOf("--changed");
  if (at < 0) return { base: undefined, rest: [...args] };
  const next = args[at + 1];
  const hasBase = next !== undefined && !next.startsWith("-");
  return { base: hasBase ? next : "main", rest: args.toSpliced(at, hasBase ? 2 : 1) };
}

async function selected(patterns: readonly string[], base: string | undefined): Promise<TestFiles> {
  const all = selectTestFiles(root, patterns);
  if (base === undefined) return all;
  const changed = await changedFiles(root, base);
  const { modules } = readSources(root);
  const tests = [...all.unit, ...all.processes, ...all.onHosts];
  const affected = new Set(changedTestFiles({ changed, modules, tests }));
  console.error(
    `… ${affected.size} of ${tests.length} test files can be affected by the changes since ${base}`,
  );
  const only = (files: readonly string[]): string[] => files.filter((path) => affected.has(path));
  return { unit: only(all.unit), processes: only(all.processes), onHosts: only(all.onHosts) };
}

async function prepareHost(): Promise<void> {
  if (process.getuid?.() !== 0) {
    throw new SetupError(
      "NOT_ROOT",
      "tests on real containers need root",
      "sudo hack/test, or hack/test --unit for the others",
    );
  }
  const report = (step: string): void => console.error(`… ${step}`);
  await installMissing([...TOOLS, ...TEST_TOOLS], { report });
  await ensureNerdctl({ report });
  await ensureEnvoy({ report });
}

try {
  process.exitCode = (await main()) ? 0 : 1;
} catch (error) {
  if (!(error instanceof Error)) throw error;
  console.error(`✗ ${error.message}`);
  if (error instanceof SetupError) console.error(`  what to do: ${error.advice}`);
  process.exitCode = 2;
}
