import { readFileSync } from "node:fs";
import { Script } from "node:vm";

/** The length of a build's id. The id is in a comment at the start of the source, and at the end of the code cache. */
const ID_CHARS = 32;
const HEAD = "(function(require,module,exports){/*";

export interface CompiledProgram {
  readonly script: Script;
  /** The id of this source, stored beside the code cache. */
  readonly id: string;
  /** Whether node used the cached code instead of compiling the source. */
  readonly fromCache: boolean;
  readonly run: (require: (name: string) => unknown) => void;
}

/** Wraps a CommonJS source in the form that `loadCompiled` expects. Adds no line, so line numbers stay the same. */
export function wrapSource(source: string, id: string): string {
  return `${HEAD}${id}*/${source.replace(/^#!.*/, "")}\n})`;
}

/**
 * Loads the program `BASE.cjs` with the code in `BASE.cache` that node compiled for it before. Ignores a cache of
 * another build, for which node itself only compares lengths, or of another version of node.
 */
export function loadCompiled(base: string): CompiledProgram {
  const filename = `${base}.cjs`;
  // The bundler writes ASCII only, which Latin-1 decodes unchanged.
  const source = readFileSync(filename, "latin1");
  const id = source.slice(HEAD.length, HEAD.length + ID_CHARS);
  const cachedData = readCache(`${base}.cache`, id);
  const script = new Script(source, cachedData === undefined ? { filename } : { filename, cachedData });
  return {
    script,
    id,
    fromCache: cachedData !== undefined && script.cachedDataRejected === false,
    run: (require) => {
      const program: unknown = script.runInThisContext();
      const module = { exports: {} };
      if (typeof program === "function") program(require, module, module.exports);
    },
  };
}

/** Returns a module of node's own. This is faster for programs than a `require` that searches for files. */
export function requireBuiltin(name: string): unknown {
  const found = process.getBuiltinModule(name);
  if (found === undefined)
    throw new Error(`"${name}" is no module of node's own, and compiled programs have no others`);
  return found;
}

function readCache(path: string, id: string): Buffer | undefined {
  try {
    const bytes = readFileSync(path);
    const end = bytes.length - ID_CHARS;
    return end > 0 && bytes.toString("latin1", end) === id ? bytes.subarray(0, end) : undefined;
  } catch {
    // Without the cache the program only starts more slowly.
    return undefined;
  }
}
