import { cpSync, existsSync, readdirSync, readFileSync } from "node:fs";
import { arch } from "node:os";
import { join } from "node:path";
import { NATIVE_PACKAGES } from "../bundling/bundle-programs.ts";

interface Manifest {
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}

/** The packages that stay outside the bundles, with all that they need, of those installed in `nodeModules`. */
export function runtimePackages(nodeModules: string): string[] {
  const found = new Set<string>();
  const queue: string[] = [...NATIVE_PACKAGES];
  for (let name = queue.pop(); name !== undefined; name = queue.pop()) {
    // Optional ones for other machines are not installed.
    if (found.has(name) || !existsSync(join(nodeModules, name))) continue;
    found.add(name);
    const manifest = JSON.parse(readFileSync(join(nodeModules, name, "package.json"), "utf8")) as Manifest;
    queue.push(
      ...Object.keys(manifest.dependencies ?? {}),
      ...Object.keys(manifest.optionalDependencies ?? {}),
    );
  }
  return [...found].sort();
}

/** Copies them, leaving out what was compiled for other machines and what only compiling needs. */
export function copyRuntimePackages(nodeModules: string, target: string): void {
  for (const name of runtimePackages(nodeModules)) {
    const from = join(nodeModules, name);
    const builds = join(from, "prebuilds");
    const foreign = existsSync(builds)
      ? readdirSync(builds)
          .filter((dir) => dir !== `linux-${arch()}`)
          .map((dir) => join(builds, dir))
      : [];
    const useless = [...foreign, join(from, "deps"), join(from, "src"), join(from, "node_modules", ".bin")];
    cpSync(from, join(target, name), { recursive: true, filter: (path) => !useless.includes(path) });
  }
}
