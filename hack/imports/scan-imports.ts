export interface FoundImport {
  readonly specifier: string;
  readonly line: number;
}

// A statement is at the start of its line; a call or a type's import() may be anywhere.
const STATEMENT = /^(?:import|export)\b(?:[^;"'`]*?\bfrom)?\s*["']([^"']+)["']/gm;
const CALL = /\bimport\(\s*["']([^"']+)["']\s*\)/g;

/** Returns every module that a TypeScript source names in imports, exports and import(), types included. */
export function scanImports(source: string): FoundImport[] {
  const found = [...source.matchAll(STATEMENT), ...source.matchAll(CALL)];
  return found
    .sort((a, b) => a.index - b.index)
    .map((match) => ({ specifier: match[1] ?? "", line: source.slice(0, match.index).split("\n").length }));
}
