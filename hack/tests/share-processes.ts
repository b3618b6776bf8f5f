import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

/**
 * The marks of a file that needs a process of its own: waiting while it is loaded, and uses of what the process has only
 * once, such as its signals, its exit code, its memory and its timers. The end of a test removes its own mocks of methods.
 */
const OWN_PROCESS =
  /^await\b|\bprocess\.(?!env\b|execPath\b|version|platform\b|arch\b|pid\b|hrtime\b|nextTick\b|cwd\b|getuid\b|getgid\b|geteuid\b|ts")\w+|\bdelete process\.env\b|\bprocess\.env(?:\.\w+|\[[^\]]+\]) (?:\?\?|\|\|)?=|"node:process"|\bmock\.(?:timers|module)|(?<!\bt\.)\bmock\.method|\bglobalThis\.|\bsetFlagsFromString|\bgc\(/m;
/** The mark of a file with hooks for all its tests. */
const HOOKS = /^(?:before|after|beforeEach|afterEach)\(/m;
/** The tests of programs that start, end and examine processes. */
const OWN_PROCESSES_OF = "hack/";

/**
 * Tests that start programs a hundred times or more. Each start copies the page tables of the test's process, which takes
 * several times as long in a process with the memory of many files.
 */
const START_MANY: readonly string[] = ["coordinator/test/store/crash.test.ts"];

/** Test files that share processes, except those that need their own. */
export interface SharingFiles {
  /** Relative to the root. */
  readonly files: readonly string[];
  /** The limit of files in one process. */
  readonly perProcess: number;
}

/** Divides test files among processes: each process has files of one package, next to each other. */
export function divideAmongProcesses(
  { files, perProcess }: SharingFiles,
  needsOwnProcess: (path: string) => boolean,
): readonly (readonly string[])[] {
  const processes: string[][] = [];
  const open = new Map<string, string[]>();
  for (const path of files) {
    const [packageName = ""] = path.split("/");
    const last = open.get(packageName);
    if (needsOwnProcess(path)) processes.push([path]);
    else if (last !== undefined && last.length < perProcess) last.push(path);
    else {
      const begun = [path];
      open.set(packageName, begun);
      processes.push(begun);
    }
  }
  return processes;
}

/** Reports whether a test file needs a process of its own. */
export function needsOwnProcess(root: string, path: string): boolean {
  if (START_MANY.includes(path)) return true;
  return path.startsWith(OWN_PROCESSES_OF) || OWN_PROCESS.test(readFileSync(join(root, path), "utf8"));
}

/**
 * Writes a module to the directory `dir` for each process with several files, which loads them one after another.
 * Returns the absolute paths of all modules to run, and what each written one stands for.
 */
export function shareProcesses(
  root: string,
  sharing: readonly SharingFiles[],
  dir: string,
): { readonly paths: readonly string[]; readonly names: ReadonlyMap<string, string> } {
  const names = new Map<string, string>();
  mkdirSync(dir, { recursive: true });
  const processes = sharing.flatMap((some) =>
    divideAmongProcesses(some, (path) => needsOwnProcess(root, path)),
  );
  const paths = processes.map((shared, at) => {
    const [first = "", ...others] = shared;
    if (others.length === 0) return join(root, first);
    const path = join(dir, `files-${at}.mjs`);
    writeFileSync(path, moduleFor(root, shared));
    names.set(path, `${first} and ${others.length} more`);
    return path;
  });
  return { paths, names };
}

/**
 * Returns a module that loads the files one after another. No test begins before all are loaded, because it could use a
 * class of its file that is not defined yet. A file with hooks is a suite, so its hooks apply to its own tests only.
 */
function moduleFor(root: string, files: readonly string[]): string {
  const imports = files.map((file) => {
    const path = join(root, file);
    const load = `import(${JSON.stringify(pathToFileURL(path).href)})`;
    if (!HOOKS.test(readFileSync(path, "utf8"))) return `  await ${load};`;
    return `  await loadedAsSuite(${JSON.stringify(file)}, () => ${load});`;
  });
  return [
    'import { before, describe } from "node:test";',
    "const loading = Promise.withResolvers();",
    "before(() => loading.promise);",
    "function loadedAsSuite(name, load) {",
    "  const { promise, resolve } = Promise.withResolvers();",
    "  describe(name, () => load().finally(resolve));",
    "  return promise;",
    "}",
    "try {",
    ...imports,
    "} finally {",
    "  loading.resolve();",
    "}",
    "",
  ].join("\n");
}
