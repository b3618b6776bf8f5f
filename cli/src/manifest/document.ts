import {
  type Alias,
  type Document,
  isAlias,
  isMap,
  isScalar,
  LineCounter,
  type ParsedNode,
  parseAllDocuments,
  type Range,
  type YAMLMap,
} from "yaml";
import type { Position, Problem } from "./problem.ts";
import type { Source } from "./source.ts";

/** The most values that the aliases of one anchor may expand to. */
const MAX_ALIASES = 100;

/** A node after its aliases were resolved. */
export type Node = Exclude<ParsedNode, Alias.Parsed>;

/** One document of a file, with the data to find positions in it. */
export interface ManifestDocument {
  readonly root: ParsedNode;
  /** Resolves aliases. Returns undefined if there is no such anchor. */
  readonly resolve: (node: ParsedNode) => Node | undefined;
  readonly positionOf: (node: { readonly range?: Range | null | undefined }) => Position;
  /**
   * Returns the document's value. Throws ReferenceError if aliases expand to far more than is
   * written.
   */
  readonly toValue: () => unknown;
}

export interface ParsedSource {
  readonly documents: readonly ManifestDocument[];
  readonly problems: readonly Problem[];
}

/**
 * Splits a file into its documents. Empty documents are omitted. JSON is also accepted, because it
 * is YAML.
 */
export function parseSource({ name, text }: Source): ParsedSource {
  const lineCounter = new LineCounter();
  const parsed = parseAllDocuments(text, {
    lineCounter,
    prettyErrors: false,
    stringKeys: true,
    version: "1.2",
  });
  const at = (offset: number): Position => {
    const { line, col } = lineCounter.linePos(offset);
    return { file: name, line, column: col };
  };
  const documents: ManifestDocument[] = [];
  const problems: Problem[] = [];
  // For a file without documents, the parser returns an empty array with the errors of the stream.
  for (const document of "empty" in parsed ? [] : parsed) {
    for (const { pos, message, code } of [...document.errors, ...document.warnings]) {
      if (isOverflow(message)) {
        // Errors after an overflow are caused by the overflow, so they are not reported.
        problems.push({ position: at(pos[0]), path: "", message: TOO_DEEP });
        return { documents: [], problems };
      }
      problems.push({
        position: at(pos[0]),
        path: "",
        message: code === "DUPLICATE_KEY" ? "this key stands here twice" : message,
      });
    }
    const root = document.contents;
    if (root === null || (isScalar(root) && root.value === null)) continue;
    documents.push({
      root,
      resolve: aliasResolver(document),
      positionOf: ({ range }) => at(range?.[0] ?? 0),
      toValue: () => document.toJS({ maxAliasCount: MAX_ALIASES }) as unknown,
    });
  }
  return { documents, problems };
}

const TOO_DEEP = "this is nested too deeply to be read: no manifest needs more than 100 levels";

/** The error messages of Node, Chromium and Safari, of the parser, and of Firefox. */
const OVERFLOWS = ["Maximum call stack size exceeded", "Stack overflow", "too much recursion"];

/** Reports whether the recursive parser exceeded the stack. */
function isOverflow(message: string): boolean {
  return OVERFLOWS.some((text) => message.includes(text));
}

/** Returns the pair of a mapping that has one of these keys; undefined if there is none. */
export function findPair(
  map: YAMLMap.Parsed,
  names: readonly string[],
): YAMLMap.Parsed["items"][number] | undefined {
  return map.items.find((pair) => names.includes(keyText(pair)));
}

export function keyText({ key }: YAMLMap.Parsed["items"][number]): string {
  return isScalar(key) ? String(key.value) : "";
}

export function isNull(node: Node | null): boolean {
  return node === null || (isScalar(node) && node.value === null);
}

export { isMap };

/**
 * Returns a function that resolves aliases and caches the results, because the library searches the
 * whole document for each alias.
 */
function aliasResolver(document: Document.Parsed): (node: ParsedNode) => Node | undefined {
  const found = new Map<Alias.Parsed, Node | undefined>();
  return (node) => {
    if (!isAlias(node)) return node;
    if (found.has(node)) return found.get(node);
    const target = node.resolve(document);
    // An alias can't refer to another alias.
    const resolved = target === undefined || isAlias(target) ? undefined : (target as Node);
    found.set(node, resolved);
    return resolved;
  };
}
