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

/** The additional folders that a folder's tests may import. */
const ALLOWED_IN_TESTS: Readonly<Record<string, readonly string[]>> = {
  // The scheduler's sources import nothing. Its tests draw random fleets from the shared seeded generator.
  scheduler: ["common"],
};

/**
 * Additional sources of another folder that a part of a folder may import. The dashboard converts pasted manifests in
 * the browser with the converter of the command line, which uses no module of Node there; otherwise the build of the
 * page would fail.
 */
const EXCEPTIONS: readonly { readonly from: string; readonly to: RegExp }[] = [
  {
    from: "coordinator/dashboard/manifest/",
    to: /^cli\/src\/((compose|kubernetes)\/convert|manifest\/(document|locate|origin|problem)|output\/document)\.ts$/,
  },
];

/** Folders whose sources support tests. The tests of every package may import them by path. */
const TEST_SUPPORT: ReadonlySet<string> = new Set(["hack", "sim"]);

/** Folders whose programs run from a checkout, with everything installed. They import other packages by path. */
const RUN_FROM_CHECKOUT: ReadonlySet<string> = new Set(["hack", "bench", "sim"]);

/** Returns one readable line for each forbidden import. */
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
  const isException = EXCEPTIONS.some((each) => module.path.startsWith(each.from) && each.to.test(target));
  if (!isException && ![...(ALLOWED[from] ?? []), ...(allowed ?? [])].includes(to))
    return `${from} must not import ${to}`;
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
