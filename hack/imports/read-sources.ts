import { existsSync, globSync, readFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import { scanImports } from "./scan-imports.ts";

export interface ImportedName {
  /** The specifier as written. */
  readonly specifier: string;
  readonly line: number;
  /** The path of the imported file, relative to the root; undefined for modules of others. */
  readonly target: string | undefined;
}

export interface Module {
  /** Relative to the root. */
  readonly path: string;
  readonly imports: readonly ImportedName[];
}

export interface Sources {
  readonly modules: readonly Module[];
  /**
   * The names of the packages that each folder's package.json declares. `""` is the root, whose tools tests and scripts
   * may use.
   */
  readonly declared: ReadonlyMap<string, ReadonlySet<string>>;
}

/** The folders with TypeScript sources of this project. */
export const FOLDERS = [
  "proto",
  "scheduler",
  "identity",
  "archive",
  "common",
  "coordinator",
  "agent",
  "cli",
  "hack",
  "bench",
  "sim",
] as const;

interface Manifest {
  readonly name?: string;
  readonly exports?: Readonly<Record<string, string>>;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly devDependencies?: Readonly<Record<string, string>>;
}

/** Reads all sources of the tree. Generated code can only be imported. */
export function readSources(root: string): Sources {
  const manifests = new Map<string, Manifest>(
    ["", ...FOLDERS].map((folder) => [folder, readManifest(join(root, folder))]),
  );
  const paths = FOLDERS.flatMap((folder) => globSync(`${folder}/**/*.{ts,tsx}`, { cwd: root }))
    .filter((path) => !/(^|\/)(node_modules|gen|dist)\//.test(path))
    .sort();
  return {
    modules: paths.map((path) => ({
      path,
      imports: scanImports(readFileSync(join(root, path), "utf8")).map((found) => ({
        ...found,
        target: resolve(path, found.specifier, manifests),
      })),
    })),
    declared: new Map([...manifests].map(([folder, manifest]) => [folder, namesDeclared(manifest)])),
  };
}

function resolve(
  from: string,
  specifier: string,
  manifests: ReadonlyMap<string, Manifest>,
): string | undefined {
  if (specifier.startsWith(".")) return normalize(join(dirname(from), specifier));
  for (const [folder, { name, exports = {} }] of manifests) {
    if (!name || (specifier !== name && !specifier.startsWith(`${name}/`))) continue;
    const inner = `.${specifier.slice(name.length)}`;
    for (const [pattern, target] of Object.entries(exports)) {
      const [head = "", tail] = pattern.split("*");
      if (pattern === inner) return normalize(join(folder, target));
      if (tail !== undefined && inner.startsWith(head))
        return normalize(join(folder, target.replace("*", inner.slice(head.length))));
    }
    // The name is not exported, but belongs to this project.
    return normalize(join(folder, inner));
  }
  return undefined;
}

function readManifest(dir: string): Manifest {
  const path = join(dir, "package.json");
  return existsSync(path) ? (JSON.parse(readFileSync(path, "utf8")) as Manifest) : {};
}

function namesDeclared(manifest: Manifest): ReadonlySet<string> {
  return new Set([
    ...Object.keys(manifest.dependencies ?? {}),
    ...Object.keys(manifest.devDependencies ?? {}),
  ]);
}
