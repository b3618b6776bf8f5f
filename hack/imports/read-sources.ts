import { existsSync, globSync, readFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import { scanImports } from "./scan-imports.ts";

export interface ImportedName {
  /** The specifier as it is written. */
  readonly specifier: string;
  readonly line: number;
  /** Path of the file it means, relative to the root; undefined for what isn't ours. */
  readonly target: string | undefined;
}

export interface Module {
  /** Relative to the root. */
  readonly path: string;
  readonly imports: readonly ImportedName[];
}

export interface Sources {
  readonly modules: readonly Module[];
  /** Folder → names of the packages its package.json declares; `""` is the root, whose tools tests and scripts may use. */
  readonly declared: ReadonlyMap<string, ReadonlySet<string>>;
}

/** The folders that hold TypeScript of ours. */
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

/** Reads every source of the tree; generated code is only ever a target. */
export function readSources(root: string): Sources {
  const manifests = new Map<string, Manifest>(
    ["", ...FOLDERS].map((folder) => [folder, readManifest(join(root, folder))]),
  );
  const paths = FOLDERS.flatMap((folder) => globSync(`${folder}/**/*.ts`, { cwd: root }))
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
    // Named, but not exported: still ours.
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
