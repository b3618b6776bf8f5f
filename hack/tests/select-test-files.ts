import { globSync } from "node:fs";
import { FOLDERS } from "../imports/read-sources.ts";

export interface TestFiles {
  /** Run anywhere, by anyone. */
  readonly unit: readonly string[];
  /** Need root and run real containers: those in `test/` and `e2e/` folders. */
  readonly onHosts: readonly string[];
}

/** Every test file below `root` whose path contains one of the patterns (all, if there is none). */
export function selectTestFiles(root: string, patterns: readonly string[]): TestFiles {
  const files = FOLDERS.flatMap((folder) => globSync(`${folder}/**/*.test.ts`, { cwd: root }))
    .filter((path) => !/(^|\/)(node_modules|gen)\//.test(path))
    .filter((path) => patterns.length === 0 || patterns.some((pattern) => path.includes(pattern)))
    .sort();
  const needsHost = (path: string): boolean => /\/(test|e2e)\//.test(path);
  return { unit: files.filter((path) => !needsHost(path)), onHosts: files.filter(needsHost) };
}
