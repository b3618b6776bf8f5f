import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { build } from "esbuild";
import { AGENT_MUTANTS, SERVING_MUTANTS } from "../mutants/agent-mutants.ts";
import { MUTANTS } from "../mutants/mutants.ts";
import { hashOfSources } from "../seed-of-sources.ts";
import { mutantSwitch } from "./mutant-switch.ts";

const ROOT = join(import.meta.dirname, "../..");
const CACHE = join(ROOT, "node_modules/.cache/sim");
/** Further files whose content the bundle depends on. */
const MORE = ["proto/{gen,src}/**/*.ts", "package-lock.json"];
/** The number of bundles that are kept, each 8 MB. */
const KEPT = 3;

/** A mutant is chosen by the bundle itself, so the entry point is not that of the sources. */
const ENTRY = join(import.meta.dirname, "main.ts");

// Bundled CommonJS packages use require and __dirname, which modules lack.
const BANNER = `import { createRequire as createRequireForBundle } from "node:module";
const require = createRequireForBundle(import.meta.url);
const __dirname = import.meta.dirname;`;

/**
 * Bundles the program that plays histories, with all mutants, and returns the path. The bundle starts in a quarter of the
 * processor time that the sources take. An earlier one of the same sources is used again.
 */
export async function bundleHistories(): Promise<string> {
  const path = join(CACHE, `${hashOfSources(MORE).toString("hex")}.mjs`);
  if (existsSync(path)) return path;
  mkdirSync(CACHE, { recursive: true });
  const partial = `${path}.${process.pid}`;
  await build({
    entryPoints: [ENTRY],
    outfile: partial,
    bundle: true,
    platform: "node",
    target: "node24",
    format: "esm",
    // Histories keep their store in memory.
    external: ["classic-level", "*.node"],
    banner: { js: BANNER },
    plugins: [mutantSwitch(allMutants())],
    logLevel: "error",
  });
  renameSync(partial, path);
  removeOld();
  return path;
}

function allMutants() {
  return Object.entries({ ...MUTANTS, ...AGENT_MUTANTS, ...SERVING_MUTANTS }).map(([name, { module }]) => ({
    file: join(import.meta.dirname, `../mutants/${name}.ts`),
    module: join(ROOT, module),
  }));
}

function removeOld(): void {
  const paths = readdirSync(CACHE).map((name) => join(CACHE, name));
  const ageOf = (path: string): number => statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0;
  for (const path of paths.sort((a, b) => ageOf(b) - ageOf(a)).slice(KEPT)) rmSync(path, { force: true });
}
