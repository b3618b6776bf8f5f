import { readFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path";

const LITERAL = /["'`]([^"'`\n]+\.ts)["'`]/g;
/** Matches the arguments of `join` after the folder of the module itself. */
const BESIDE = /import\.meta\.dirname((?:,\s*["'`][^"'`\n]+["'`])+)/g;
const PIECE = /["'`]([^"'`\n]+)["'`]/g;
const EXPRESSION = /\$\{[^}]*\}/;

/** This file names every program, so without an exception a test that bundles one program would depend on all. */
const LIST_OF_PROGRAMS = "hack/bundling/bundle-programs.ts";

/** Returns the results of `findMentions` for each module below the root. */
export function readMentions(
  root: string,
  modules: readonly { readonly path: string }[],
): ReadonlyMap<string, readonly string[]> {
  const known = new Set(modules.map(({ path }) => path));
  return new Map(
    modules
      .filter(({ path }) => path !== LIST_OF_PROGRAMS)
      .map(({ path }) => [path, findMentions(path, readFileSync(join(root, path), "utf8"), known)]),
  );
}

/**
 * Returns the modules that a source names in its texts, relative to its own folder or to the root: programs that it
 * starts, and sources that it reads. An expression inside a name matches any part of a file's name.
 */
export function findMentions(path: string, text: string, known: ReadonlySet<string>): string[] {
  const folder = dirname(path);
  const names = [...text.matchAll(LITERAL)].map(([, name = ""]) => name);
  const joined = [...text.matchAll(BESIDE)].map(([, pieces = ""]) =>
    join(...[...pieces.matchAll(PIECE)].map(([, piece = ""]) => piece)),
  );
  const paths = [...names, ...joined].flatMap((name) => [normalize(join(folder, name)), normalize(name)]);
  const found = paths.flatMap((it) =>
    EXPRESSION.test(it) ? matching(it, known) : known.has(it) ? [it] : [],
  );
  return [...new Set(found)].filter((it) => it !== path).sort();
}

function matching(template: string, known: ReadonlySet<string>): string[] {
  const [head = "", ...tails] = template.split(EXPRESSION);
  // A name that begins with an expression could be any file of the tree.
  if (!head.includes("/")) return [];
  const tail = tails.at(-1) ?? "";
  return [...known].filter(
    (it) => it.startsWith(head) && it.endsWith(tail) && !it.slice(head.length, -tail.length).includes("/"),
  );
}
