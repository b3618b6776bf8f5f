import { basename, dirname, join } from "node:path";
import { build, type Plugin, type ResolveOptions, type ResolveResult } from "esbuild";

const NAMESPACE = "mutant-switch";

/** A mutant, by the absolute paths of its file and of the module that the file replaces. */
export interface Replacement {
  readonly file: string;
  readonly module: string;
}

/**
 * Returns a plugin by which a bundle contains all mutants beside the modules that they replace. A program that is started
 * with `--mutant NAME` uses this mutant's module, and all others use the original one.
 */
export function mutantSwitch(mutants: readonly Replacement[]): Plugin {
  const byModule = Map.groupBy(mutants, ({ module }) => module);
  return {
    name: NAMESPACE,
    setup: async ({ onResolve, onLoad, resolve }) => {
      const exportsOf = await readExports([...byModule.keys()]);
      const packaged = new Map<string, Promise<ResolveResult>>();
      const resolvePackaged = (path: string, from: ResolveOptions): Promise<ResolveResult> => {
        const known = packaged.get(path) ?? resolve(path, { ...from, pluginData: NAMESPACE });
        packaged.set(path, known);
        return known;
      };
      onResolve({ filter: /^(?:\.|@forage\/)/ }, async ({ path, pluginData, importer, kind, resolveDir }) => {
        if (pluginData === NAMESPACE) return undefined;
        const module = path.startsWith(".")
          ? join(resolveDir, path)
          : (await resolvePackaged(path, { kind, resolveDir })).path;
        const isUsed = byModule.get(module)?.every(({ file }) => file !== importer) ?? false;
        return isUsed ? { path: module, namespace: NAMESPACE } : undefined;
      });
      onLoad({ filter: /^/, namespace: NAMESPACE }, ({ path }) => ({
        contents: switchOf(path, byModule.get(path) ?? [], exportsOf.get(path) ?? []),
        resolveDir: dirname(path),
        loader: "js",
      }));
    },
  };
}

/** Returns a module that exports what the chosen mutant exports, or the original module without a mutant. */
function switchOf(module: string, mutants: readonly Replacement[], names: readonly string[]): string {
  return `import { parseArgs } from "node:util";
import * as original from ${JSON.stringify(module)};
${mutants.map(({ file }, index) => `import * as mutant${index} from ${JSON.stringify(file)};\n`).join("")}
const mutants = {${mutants.map(({ file }, index) => `${JSON.stringify(basename(file, ".ts"))}: mutant${index}`).join(", ")}};
const { values } = parseArgs({ strict: false, options: { mutant: { type: "string" } } });
const chosen = mutants[values.mutant] ?? original;
export const { ${names.join(", ")} } = chosen;
`;
}

/** Returns the names of the values that each module exports. */
async function readExports(modules: readonly string[]): Promise<Map<string, readonly string[]>> {
  const { metafile } = await build({
    entryPoints: [...modules],
    absWorkingDir: "/",
    outdir: "/unused",
    format: "esm",
    bundle: false,
    write: false,
    metafile: true,
  });
  return new Map(
    Object.values(metafile.outputs).map(({ entryPoint = "", exports }) => [join("/", entryPoint), exports]),
  );
}
