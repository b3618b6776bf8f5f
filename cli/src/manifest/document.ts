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
import type { Source } from "./read-sources.ts";

/** A node that is no alias any more. */
export type Node = Exclude<ParsedNode, Alias.Parsed>;

/** One document of a file, with what it takes to say where something in it stands. */
export interface ManifestDocument {
  readonly root: ParsedNode;
  /** Follows aliases; undefined when there is no such anchor. */
  readonly resolve: (node: ParsedNode) => Node | undefined;
  readonly positionOf: (node: { readonly range?: Range | null | undefined }) => Position;
}

export interface ParsedSource {
  readonly documents: readonly ManifestDocument[];
  readonly problems: readonly Problem[];
}

/** Splits a file into its documents; empty ones are left out. JSON is YAML, too. */
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
  // Without any document, yaml gives an empty array with the stream's own errors on it.
  for (const document of "empty" in parsed ? [] : parsed) {
    for (const { pos, message, code } of [...document.errors, ...document.warnings]) {
      if (isOverflow(message)) {
        // The parser goes on after it, and what it finds then is about its own state.
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
    });
  }
  return { documents, problems };
}

const TOO_DEEP = "this is nested too deeply to be read: no manifest needs more than 100 levels";

/** Reports whether the parser, which is recursive, ran out of stack. */
function isOverflow(message: string): boolean {
  return message.includes("Maximum call stack size exceeded") || message.includes("Stack overflow");
}

/** The pair of a mapping that has one of these keys. */
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

/** Remembers what it has found: yaml looks through the whole document for each alias. */
function aliasResolver(document: Document.Parsed): (node: ParsedNode) => Node | undefined {
  const found = new Map<Alias.Parsed, Node | undefined>();
  return (node) => {
    if (!isAlias(node)) return node;
    if (found.has(node)) return found.get(node);
    const target = node.resolve(document);
    // An alias to an alias can't be written.
    const resolved = target === undefined || isAlias(target) ? undefined : (target as Node);
    found.set(node, resolved);
    return resolved;
  };
}
