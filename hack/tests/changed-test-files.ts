import { dirname } from "node:path";
import { FOLDERS, type Module } from "../imports/read-sources.ts";

/** Packages whose end-to-end tests start whole programs, which imports do not show. */
const PROGRAM_PACKAGES: ReadonlySet<string> = new Set(["agent", "coordinator", "cli", "hack"]);
const PACKAGES: ReadonlySet<string> = new Set(FOLDERS);
const DOCUMENTATION = "docs/";
const GENERATED = "proto/gen/";
/** The end-to-end tests in `hack/` run all programs together. */
const WHOLE_PRODUCT = "hack/";
/** Tests that read all sources. */
const READERS = /^hack\/(checks|imports|tests)\/|-reference\.test\.ts$|^cli\/test\/(docs|hints)\.test\.ts$/;

export interface ChangedTestsInput {
  /** Paths of files that were added, changed or removed, relative to the repository's root. */
  readonly changed: readonly string[];
  readonly modules: readonly Pick<Module, "path" | "imports">[];
  /** The modules that each module starts as programs or reads, by its path. Default: none. */
  readonly mentions?: ReadonlyMap<string, readonly string[]>;
  readonly tests: readonly string[];
}

/**
 * Returns the test files that a change can affect: those that changed, those that import a changed file, directly or through
 * others, or start it as a program, those that read all sources, those beside a changed file that is no module, and the end-to-end tests of each package with a changed or affected
 * source. A changed `.proto` file counts as all generated code. A change of the documentation affects every test but the end-to-end
 * ones, and any other change outside the packages affects every test.
 */
export function changedTestFiles({ changed, modules, mentions, tests }: ChangedTestsInput): string[] {
  const known = new Set(modules.map(({ path }) => path));
  const relevant = changed.filter((path) => path.includes("/") || !path.endsWith(".md"));
  const outside = relevant.filter((path) => !PACKAGES.has(packageOf(path)));
  if (outside.some((path) => !path.startsWith(DOCUMENTATION))) return [...tests];
  if (outside.length > 0) {
    const others = new Set(
      changedTestFiles({
        ...{ changed: relevant.filter((it) => !outside.includes(it)), modules, tests },
        ...(mentions && { mentions }),
      }),
    );
    return tests.filter((path) => others.has(path) || !isEndToEnd(path));
  }
  const generated = relevant.some((path) => path.endsWith(".proto")) ? generatedTargets(modules) : [];
  const affected = importersOf([...relevant, ...generated], modules, mentions);
  const data = relevant.filter((path) => !known.has(path));
  const packages = new Set([...affected].filter((path) => !isTest(path)).map(packageOf));
  for (const path of data) packages.add(packageOf(path));
  return tests.filter(
    (path) =>
      affected.has(path) ||
      (relevant.length > 0 && READERS.test(path)) ||
      data.some((it) => path.startsWith(`${dirname(it)}/`)) ||
      (isEndToEnd(path) && runsProgramOf(path, packages)),
  );
}

function importersOf(
  changed: readonly string[],
  modules: ChangedTestsInput["modules"],
  mentions: ChangedTestsInput["mentions"],
): ReadonlySet<string> {
  const importers = new Map<string, string[]>();
  for (const { path, imports } of modules) {
    for (const target of [...imports.flatMap((it) => it.target ?? []), ...(mentions?.get(path) ?? [])])
      importers.set(target, [...(importers.get(target) ?? []), path]);
  }
  const affected = new Set(changed);
  // A set's iterator also visits members that are added during the loop.
  for (const path of affected) for (const importer of importers.get(path) ?? []) affected.add(importer);
  return affected;
}

function runsProgramOf(test: string, packages: ReadonlySet<string>): boolean {
  if (packages.has(packageOf(test))) return true;
  return test.startsWith(WHOLE_PRODUCT) && [...packages].some((it) => PROGRAM_PACKAGES.has(it));
}

function isEndToEnd(path: string): boolean {
  return /\.e2e\.test\.ts$|\/e2e\//.test(path);
}

function isTest(path: string): boolean {
  return /\.test\.ts$|(^|\/)(test|e2e)\/|^sim\//.test(path);
}

function generatedTargets(modules: ChangedTestsInput["modules"]): string[] {
  const targets = modules.flatMap(({ imports }) => imports.flatMap(({ target }) => target ?? []));
  return targets.filter((path) => path.startsWith(GENERATED));
}

function packageOf(path: string): string {
  return path.split("/", 1)[0] ?? "";
}
