import { isBuiltin } from "node:module";
import type { ImportedName, Module, Sources } from "./read-sources.ts";

/** The folders that each folder's sources may import. Tests may import the support for tests as well. */
const ALLOWED: Readonly<Record<string, readonly string[]>> = {
  proto: [],
  common: [],
  scheduler: [],
  identity: ["common", "proto"],
  archive: [],
  coordinator: ["common", "identity", "scheduler", "proto"],
  agent: ["archive", "common", "identity", "scheduler", "proto"],
  cli: ["archive", "common", "identity", "scheduler", "proto"],
  hack: ["archive", "common", "proto", "identity", "cli"],
  sim: ["common", "proto", "identity", "scheduler", "coordinator", "agent"],
  bench: ["common", "proto", "scheduler", "identity", "archive", "coordinator", "agent", "cli", "hack"],
};

/** The folders that a folder's tests may import besides. */
const ALLOWED_IN_TESTS: Readonly<Record<string, readonly string[]>> = {
  // The scheduler itself stands alone; its tests draw random fleets from the one source of seeded choices.
  scheduler: ["common"],
};

/** Folders whose sources are support for tests. The tests of every package may import them by path. */
const TEST_SUPPORT: ReadonlySet<string> = new Set(["hack", "sim"]);

/** Folders whose programs run from a checkout, with everything installed. They import other packages by path. */
const RUN_FROM_CHECKOUT: ReadonlySet<string> = new Set(["hack", "bench", "sim"]);

/** One readable line for each import that points where it must not. */
export function findViolations(sources: Sources): string[] {
  return sources.modules.flatMap((module) =>
    module.imports.flatMap((imported) => {
      const reason =
        imported.target === undefined
          ? judgeForeign(sources, module, imported)
          : judgeOwn(module, imported, imported.target);
      return reason ? [`${module.path}:${imported.line}: ${reason} (${imported.specifier})`] : [];
    }),
  );
}

function judgeOwn(module: Module, imported: ImportedName, target: string): string | undefined {
  const from = folderOf(module.path);
  const to = folderOf(target);
  if (isTest(target) && !isTest(module.path)) return "sources don't import tests";
  if (from === to) return undefined;
  if (TEST_SUPPORT.has(to) && isTest(module.path)) return undefined;
  const allowed = isTest(module.path) ? ALLOWED_IN_TESTS[from] : undefined;
  if (![...(ALLOWED[from] ?? []), ...(allowed ?? [])].includes(to)) return `${from} must not import ${to}`;
  const byPath = imported.specifier.startsWith(".");
  if (byPath && !RUN_FROM_CHECKOUT.has(from)) return `import another package by its name, not its path`;
  return undefined;
}

function judgeForeign(sources: Sources, module: Module, { specifier }: ImportedName): string | undefined {
  if (isBuiltin(specifier)) return specifier.startsWith("node:") ? undefined : `write node:${specifier}`;
  const name = specifier.split("/", specifier.startsWith("@") ? 2 : 1).join("/");
  const folder = folderOf(module.path);
  const known = new Set(sources.declared.get(folder));
  // Tests, tools and benchmarks run from a checkout, with everything installed.
  if (isTest(module.path) || RUN_FROM_CHECKOUT.has(folder)) {
    for (const names of sources.declared.values()) for (const declared of names) known.add(declared);
  }
  return known.has(name) ? undefined : `${folder}/package.json doesn't declare ${name}`;
}

function folderOf(path: string): string {
  return path.split("/", 1)[0] ?? "";
}

function isTest(path: string): boolean {
  return /\.test\.ts$|(^|\/)(test|e2e)\/|^sim\//.test(path);
}
