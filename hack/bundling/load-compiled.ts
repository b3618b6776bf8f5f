import { readFileSync } from "node:fs";
import { Script } from "node:vm";

/** Digits of the build's id: at the start of the source, behind a mark, and at the end of the code cache. */
const ID_CHARS = 32;
const HEAD = "(function(require,module,exports){/*";

export interface CompiledProgram {
  readonly script: Script;
  /** The id of this source, stored beside the code cache. */
  readonly id: string;
  /** Whether node took the code from the cache instead of compiling the source. */
  readonly fromCache: boolean;
  readonly run: (require: (name: string) => unknown) => void;
}

/** Wraps a CommonJS source the way that `loadCompiled` expects it; without a line of its own, so that line numbers stay. */
export function wrapSource(source: string, id: string): string {
  return `${HEAD}${id}*/${source.replace(/^#!.*/, "")}\n})`;
}

/**
 * Reads the program `BASE.cjs` with the code that node compiled for it before, `BASE.cache`. A cache of another build is ignored: node
 * itself compares only lengths. The same is true of a cache of another node.
 */
export function loadCompiled(base: string): CompiledProgram {
  const filename = `${base}.cjs`;
  // The bundler writes ASCII only, which is read as it is.
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

/** Programs find node's own modules faster this way than through a `require` that looks for files. */
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
