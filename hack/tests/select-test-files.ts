import { globSync } from "node:fs";
import { FOLDERS } from "../imports/read-sources.ts";

export interface TestFiles {
  /** Tests that run anywhere, for any user. */
  readonly unit: readonly string[];
  /**
   * Tests that start programs and wait for them, some as root, but run no containers: those in `test/` folders. They
   * disturb no others.
   */
  readonly processes: readonly string[];
  /** Tests that compute for a long time on virtual time, so their speed doesn't matter. */
  readonly computing: readonly string[];
  /**
   * Tests that need root and run real containers or a gateway: those named `.e2e.`, and all of the agent's and hack's
   * in such folders.
   */
  readonly onHosts: readonly string[];
  /** Tests like `onHosts` that must run alone. */
  readonly alone: readonly string[];
}

/** The files that must run alone, with the reason. */
const ALONE: Readonly<Record<string, string>> = {
  "agent/test/driver/tasks.e2e.test.ts": "measures the share of a processor that a container gets",
  "hack/e2e/lab-command.e2e.test.ts": "boots a host, and compares what is on the machine before and after",
  "hack/e2e/lab-drivers.e2e.test.ts": "boots three hosts; two files of booted hosts run at a time",
  "hack/e2e/lab-faults.e2e.test.ts": "boots four hosts; two files of booted hosts run at a time",
  "hack/e2e/lab-long.e2e.test.ts": "boots four hosts; two files of booted hosts run at a time",
  "hack/e2e/lab.e2e.test.ts": "boots four hosts; two files of booted hosts run at a time",
};

/** The folders whose tests compute, without the file that starts programs. */
const COMPUTING = /^(scheduler\/test|sim)\/(?!coordinator-processes\.)/;

/** Returns every test file below `root` whose path contains one of the patterns, or all files if there is none. */
export function selectTestFiles(root: string, patterns: readonly string[]): TestFiles {
  const files = FOLDERS.flatMap((folder) => globSync(`${folder}/**/*.test.ts`, { cwd: root }))
    .filter((path) => !/(^|\/)(node_modules|gen)\//.test(path))
    .filter((path) => patterns.length === 0 || patterns.some((pattern) => path.includes(pattern)))
    .sort();
  const inTestFolder = files.filter((path) => /\/(test|e2e)\/|^sim\//.test(path));
  const needsHost = (path: string): boolean => /\.e2e\.test\.ts$|\/e2e\/|^(agent|hack)\//.test(path);
  const onHosts = inTestFolder.filter(needsHost);
  return {
    unit: files.filter((path) => !inTestFolder.includes(path)),
    processes: inTestFolder.filter((path) => !needsHost(path) && !COMPUTING.test(path)),
    computing: inTestFolder.filter((path) => COMPUTING.test(path)),
    // Those of hack/ take longest. They start first, so the run ends with short ones on all processors.
    onHosts: onHosts.filter((path) => !(path in ALONE)).reverse(),
    alone: onHosts.filter((path) => path in ALONE),
  };
}
