import { globSync } from "node:fs";
import { FOLDERS } from "../imports/read-sources.ts";

export interface TestFiles {
  /** Run anywhere, by anyone. */
  readonly unit: readonly string[];
  /** Start programs and wait for them, some as root, but run no containers: those in `test/` folders. They disturb no others. */
  readonly processes: readonly string[];
  /** Need root and run real containers or a gateway: those named `.e2e.`, and all of the agent's and hack's in such folders. */
  readonly onHosts: readonly string[];
}

/** Every test file below `root` whose path contains one of the patterns (all, if there is none). */
export function selectTestFiles(root: string, patterns: readonly string[]): TestFiles {
  const files = FOLDERS.flatMap((folder) => globSync(`${folder}/**/*.test.ts`, { cwd: root }))
    .filter((path) => !/(^|\/)(node_modules|gen)\//.test(path))
    .filter((path) => patterns.length === 0 || patterns.some((pattern) => path.includes(pattern)))
    .sort();
  const inTestFolder = files.filter((path) => /\/(test|e2e)\/|^sim\//.test(path));
  const needsHost = (path: string): boolean => /\.e2e\.test\.ts$|\/e2e\/|^(agent|hack)\//.test(path);
  return {
    unit: files.filter((path) => !inTestFolder.includes(path)),
    processes: inTestFolder.filter((path) => !needsHost(path)),
    onHosts: inTestFolder.filter(needsHost),
  };
}
