#!/usr/bin/env node
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { ensureEnvoy } from "./lib/envoy.ts";
import { installMissing, TEST_TOOLS, TOOLS } from "./lib/host-tools.ts";
import { ensureNerdctl } from "./lib/nerdctl.ts";
import { SetupError } from "./lib/setup-error.ts";
import { runTests } from "./tests/run-tests.ts";
import { selectTestFiles } from "./tests/select-test-files.ts";

const root = join(import.meta.dirname, "..");

async function main(): Promise<boolean> {
  const { values, positionals } = parseArgs({
    options: { unit: { type: "boolean" }, e2e: { type: "boolean" } },
    allowPositionals: true,
  });
  const both = values.unit === values.e2e;
  const { unit, processes, onHosts } = selectTestFiles(root, positionals);
  const groups = [
    {
      files: [...(both || values.unit ? unit : []), ...(both || values.e2e ? processes : [])],
      concurrency: availableParallelism(),
    },
    // Each has a containerd of its own, and some measure how fast things go: one after the other.
    { files: both || values.e2e ? onHosts : [], concurrency: 1 },
  ];
  if (groups.every(({ files }) => files.length === 0)) {
    throw new SetupError("BAD_USAGE", "no test file matches", "hack/test --help");
  }
  if ((both || values.e2e) && processes.length + onHosts.length > 0) await prepareHost();
  return runTests(root, groups);
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
