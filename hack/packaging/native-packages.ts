import { existsSync, readFileSync } from "node:fs";
import { join, sep } from "node:path";
import type { Architecture } from "../lib/architecture.ts";
import { directoryEntries, type Entry } from "./entry.ts";

interface Manifest {
  readonly cpu?: string | readonly string[];
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}

export interface NativePackageInputs {
  readonly architecture: Architecture;
  readonly nodeModules: readonly string[];
}

/** npm's names of the processor architectures. */
export const NODE_ARCHITECTURE: Readonly<Record<Architecture, string>> = { amd64: "x64", arm64: "arm64" };
/** The files that only a compilation needs. */
const USELESS = ["deps", "src", join("node_modules", ".bin")];

/** Returns the files of an npm package with compiled code and of all its dependencies, for one architecture. */
export function nativePackageEntries(lib: string, name: string, inputs: NativePackageInputs): Entry[] {
  return nativePackages(name, inputs).flatMap((found) => {
    const from = folderOf(found, inputs) ?? "";
    const useless = USELESS.map((part) => join(from, part));
    const builds = join(from, "prebuilds") + sep;
    const own = join(builds, `linux-${NODE_ARCHITECTURE[inputs.architecture]}`);
    const isIncluded = (path: string): boolean =>
      !useless.includes(path) && (!path.startsWith(builds) || path.startsWith(own));
    return directoryEntries(`${lib}/node_modules/${found}`, from, isIncluded);
  });
}

/** Returns the names of the package and all its dependencies, sorted. Optional ones for other machines are left out. */
export function nativePackages(name: string, inputs: NativePackageInputs): string[] {
  const found = new Set<string>();
  const queue = [name];
  for (let next = queue.pop(); next !== undefined; next = queue.pop()) {
    const folder = folderOf(next, inputs);
    if (found.has(next) || folder === undefined) continue;
    const manifest = JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as Manifest;
    if (manifest.cpu !== undefined && ![manifest.cpu].flat().includes(NODE_ARCHITECTURE[inputs.architecture]))
      continue;
    found.add(next);
    queue.push(...Object.keys({ ...manifest.dependencies, ...manifest.optionalDependencies }));
  }
  return [...found].sort();
}

function folderOf(name: string, { nodeModules }: NativePackageInputs): string | undefined {
  return nodeModules.map((root) => join(root, name)).find((path) => existsSync(path));
}
