#!/usr/bin/env node
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { bundlePrograms, PROGRAMS } from "./bundling/bundle-programs.ts";
import { readSources } from "./imports/read-sources.ts";
import {
  bootedKinds,
  FULL_KINDS,
  fileLimitFor,
  labMissingVariable,
  testedKinds,
} from "./lab-hosts/host-kinds.ts";
import { ensurePreviousPackages, findPreviousVersion } from "./lab-hosts/previous-version.ts";
import { ensureEnvoy } from "./lib/envoy.ts";
import { ensureEtcd } from "./lib/etcd-server.ts";
import { installMissing, TEST_TOOLS, TOOLS } from "./lib/host-tools.ts";
import { ensureNerdctl } from "./lib/nerdctl.ts";
import { ensureS3Program } from "./lib/s3-server.ts";
import { SetupError } from "./lib/setup-error.ts";
import { FIRST_VERSION } from "./system/lab-fleet.ts";
import { tryLab } from "./system/try-lab.ts";
import { changedFiles } from "./tests/changed-files.ts";
import { changedTestFiles } from "./tests/changed-test-files.ts";
import { readMentions } from "./tests/find-mentions.ts";
import { onMemoryDisks, thisMachine } from "./tests/memory-disks.ts";
import { runTests, type TestGroup } from "./tests/run-tests.ts";
import { selectTestFiles, type TestFiles } from "./tests/select-test-files.ts";

const root = join(import.meta.dirname, "..");
/** The number of files per processor. Files that run containers spend most of their time waiting. */
const HOSTS_PER_PROCESSOR = 2;

/**
 * The number of files of unit tests in one process. Most files take less time than the start of a process and the loading
 * of its modules.
 */
const UNIT_TESTS_TOGETHER = 40;
/** The same for tests that start programs. They are longer, and a process must end within the limit of a file. */
const PROCESS_TESTS_TOGETHER = 16;

/** It upgrades from the previous version and uses etcd. Both can be downloaded only outside the networks of tests. */
const LONG_LAB_TEST = "hack/e2e/lab-long.e2e.test.ts";
/** It also boots hosts in the place of virtual machines. */
const DRIVERS_TEST = "hack/e2e/lab-drivers.e2e.test.ts";
/**
 * The tests of booted hosts. They need an image, which can be built only outside the networks of tests. The longest
 * start first, so that two at a time end together.
 */
const LAB_TESTS: readonly string[] = [
  LONG_LAB_TEST,
  "hack/e2e/lab.e2e.test.ts",
  "hack/e2e/lab-faults.e2e.test.ts",
  DRIVERS_TEST,
  "hack/e2e/lab-command.e2e.test.ts",
];
/**
 * The number of files with booted hosts that run at a time. Hosts spend most of their time waiting, and two processors
 * can boot those of two files.
 */
const LABS_AT_ONCE = 2;
/** The tests on hosts that start an S3 server. Its program can be downloaded only outside the networks of tests. */
const S3_TESTS: readonly string[] = ["hack/e2e/workspaces.e2e.test.ts"];

const report = (step: string): void => console.error(`… ${step}`);

async function main(): Promise<boolean> {
  const { base, rest } = takeBase(process.argv.slice(2));
  const { values, positionals } = parseArgs({
    args: rest,
    options: { unit: { type: "boolean" }, e2e: { type: "boolean" }, "lab-full": { type: "boolean" } },
    allowPositionals: true,
  });
  const both = values.unit === values.e2e;
  const isLabFull = values["lab-full"] ?? false;
  if (isLabFull) {
    process.env.FORAGE_LAB_KINDS ??= FULL_KINDS.join(" ");
    process.env.FORAGE_LAB_FULL = "1";
  }
  const { unit, processes, computing, onHosts, alone } = await selected(positionals, base);
  const onLabs = LAB_TESTS.filter((path) => alone.includes(path));
  const e2e = both || values.e2e;
  const groups: TestGroup[] = [
    {
      name: "unit tests and tests of processes, with simulations beside them and the next ones",
      files: [],
      sharing: [
        { files: e2e ? processes : [], perProcess: PROCESS_TESTS_TOGETHER },
        { files: both || values.unit ? unit : [], perProcess: UNIT_TESTS_TOGETHER },
      ],
      // Some wait for the programs that they start.
      concurrency: availableParallelism() + 1,
      beside: { files: e2e ? computing : [], concurrency: availableParallelism() },
    },
    {
      name: "tests on hosts",
      files: e2e ? onHosts : [],
      concurrency: HOSTS_PER_PROCESSOR * availableParallelism(),
      ownNetwork: true,
    },
    {
      name: "tests that run alone",
      files: e2e ? alone.filter((path) => !onLabs.includes(path)) : [],
      concurrency: 1,
      ownNetwork: true,
    },
    {
      name: "tests of booted hosts",
      files: e2e ? onLabs : [],
      concurrency: LABS_AT_ONCE,
      ownNetwork: true,
      limitMs: fileLimitFor(testedKinds(process.env), isLabFull),
    },
  ];
  if (
    groups.every((group) =>
      [group.files, group.beside?.files, ...(group.sharing ?? []).map(({ files }) => files)].every(
        (files) => !files?.length,
      ),
    )
  ) {
    if (base !== undefined) return true;
    throw new SetupError("BAD_USAGE", "no test file matches", "hack/test --help");
  }
  if (e2e && processes.length + onHosts.length + alone.length > 0) await prepareHost();
  if (e2e && onHosts.some((path) => S3_TESTS.includes(path))) await ensureS3Program({ report });
  let skipped: readonly string[] = [];
  if (e2e && onLabs.length > 0) {
    skipped = await prepareLab((onLabs.includes(DRIVERS_TEST) ? bootedKinds : testedKinds)(process.env));
    if (isLabFull && onLabs.includes(LONG_LAB_TEST)) skipped = [...skipped, ...(await prepareLong())];
  }
  const test = () => runTests(root, groups);
  // Only root can mount.
  const passed = process.getuid?.() === 0 ? await onMemoryDisks(thisMachine(), report, test) : await test();
  skipped.forEach(report);
  // --lab-full requires the tests of every kind.
  return passed && !(isLabFull && skipped.length > 0);
}

/** Removes `--changed [BASE]` from the arguments, and returns both. */
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
  const tests = [...all.unit, ...all.processes, ...all.computing, ...all.onHosts, ...all.alone];
  const mentions = readMentions(root, modules);
  const affected = new Set(changedTestFiles({ changed, modules, mentions, tests }));
  console.error(
    `… ${affected.size} of ${tests.length} test files can be affected by the changes since ${base}`,
  );
  const only = (files: readonly string[]): string[] => files.filter((path) => affected.has(path));
  return {
    unit: only(all.unit),
    processes: only(all.processes),
    computing: only(all.computing),
    onHosts: only(all.onHosts),
    alone: only(all.alone),
  };
}

/**
 * Prepares the kinds of hosts to test. Tests of a kind are skipped if no such host boots. Returns a line for each such
 * kind.
 */
async function prepareLab(kinds: readonly string[]): Promise<readonly string[]> {
  const skipped: string[] = [];
  for (const kind of kinds) {
    const missing = await tryLab(kind, report);
    if (missing === undefined) continue;
    const text = `no host of the kind ${kind} boots on this machine: ${missing}`;
    process.env[labMissingVariable(kind)] = text;
    skipped.push(`tests of booted hosts are skipped: ${text}`);
  }
  skipped.forEach(report);
  return skipped;
}

/** Returns a line for each skipped part of the long tests, with the reason. */
async function prepareLong(): Promise<readonly string[]> {
  await ensureEtcd({ report });
  const previous = await findPreviousVersion(root);
  if (typeof previous === "string") return [`the upgrade from the previous version is skipped: ${previous}`];
  report(`packages of the previous version, ${previous.name}`);
  await ensurePreviousPackages(root, previous, FIRST_VERSION);
  return [];
}

async function prepareHost(): Promise<void> {
  if (process.getuid?.() !== 0) {
    throw new SetupError(
      "NOT_ROOT",
      "tests on real containers need root",
      "sudo hack/test, or hack/test --unit for the others",
    );
  }
  await installMissing([...TOOLS, ...TEST_TOOLS], { report });
  await ensureNerdctl({ report });
  await ensureEnvoy({ report });
  // The programs are bundled once for all, because the files that need them start at the same time.
  await bundlePrograms({ root, outDir: join(root, "dist"), programs: PROGRAMS });
}

try {
  process.exitCode = (await main()) ? 0 : 1;
} catch (error) {
  if (!(error instanceof Error)) throw error;
  console.error(`✗ ${error.message}`);
  if (error instanceof SetupError) console.error(`  what to do: ${error.advice}`);
  process.exitCode = 2;
}
