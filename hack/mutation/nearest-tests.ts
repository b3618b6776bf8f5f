import { dirname } from "node:path";
import type { Module } from "../imports/read-sources.ts";

/**
 * Returns the test files that load a module, directly or through others, or start a program that does. They are sorted
 * by the number of imports in between; among equals, those in the module's own folder come first. `mentions` has the
 * programs that each module names.
 */
export function nearestTests(
  path: string,
  modules: readonly Pick<Module, "path" | "imports">[],
  tests: ReadonlySet<string>,
  mentions: ReadonlyMap<string, readonly string[]> = new Map(),
): string[] {
  const importers = new Map<string, string[]>();
  for (const module of modules) {
    const used = [
      ...module.imports.flatMap(({ target }) => target ?? []),
      ...(mentions.get(module.path) ?? []),
    ];
    for (const target of used) importers.set(target, [...(importers.get(target) ?? []), module.path]);
  }
  const distances = new Map([[path, 0]]);
  // A map's iterator also visits entries that are added during the loop.
  for (const [reached, distance] of distances)
    for (const importer of importers.get(reached) ?? [])
      if (!distances.has(importer)) distances.set(importer, distance + 1);
  const folderRank = (test: string): number => (dirname(test) === dirname(path) ? 0 : 1);
  return [...distances]
    .filter(([test]) => tests.has(test))
    .sort(([a, near], [b, far]) => near - far || folderRank(a) - folderRank(b) || (a < b ? -1 : 1))
    .map(([test]) => test);
}
