import { isScalar, isSeq, type ParsedNode, type YAMLMap } from "yaml";
import { isMap, isNull, keyText, type ManifestDocument, type Node } from "../manifest/document.ts";
import type { Problem } from "../manifest/problem.ts";

type Pair = YAMLMap.Parsed["items"][number];

const MERGE = "<<";

export interface FieldOptions {
  readonly document: ManifestDocument;
  /** The variables of the shell; empty for notations without variables. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Replaces the variables in a text. Default: texts are not changed. */
  readonly expand?: (text: string) => { readonly text: string; readonly problem: string | undefined };
  /** Reports a problem that makes the file unusable. */
  readonly fail: (problem: Problem) => void;
  /** Reports a part that can't be converted. */
  readonly lose: (problem: Problem) => void;
}

/**
 * The most values read from one document. Repeated aliases count each time, because a few lines of
 * aliases can expand to billions of values.
 */
const MAX_VALUES = 200_000;

/** Counts the values read from one document. */
interface Count {
  values: number;
}

/**
 * A value of a file in another notation, with its path and position. Reading a value of the wrong
 * type reports a problem.
 */
export class Field {
  readonly node: ParsedNode;
  readonly path: string;
  readonly #options: FieldOptions;
  readonly #count: Count;

  constructor(node: ParsedNode, path: string, options: FieldOptions, count: Count = { values: 0 }) {
    this.node = node;
    this.path = path;
    this.#options = options;
    this.#count = count;
  }

  get document(): ManifestDocument {
    return this.#options.document;
  }

  get env(): FieldOptions["env"] {
    return this.#options.env;
  }

  get kind(): "null" | "map" | "list" | "scalar" {
    if (this.#isOverLimit()) return "null";
    const node = this.#resolved();
    if (node === undefined || isNull(node)) return "null";
    if (isMap(node)) return "map";
    return isSeq(node) ? "list" : "scalar";
  }

  /** Returns the fields of a mapping in order; empty if it has no value. */
  entries(): readonly (readonly [name: string, field: Field])[] {
    if (this.kind === "null") return [];
    const node = this.#resolved();
    if (node === undefined || !isMap(node)) return this.fail("must be a mapping") ?? [];
    return this.#pairs(node as YAMLMap.Parsed).map((pair) => {
      const name = keyText(pair);
      return [name, this.#child(pair.value ?? pair.key, joinPath(this.path, name), pair.value === null)];
    });
  }

  get(name: string): Field | undefined {
    const node = this.#resolved();
    const pairs = node !== undefined && isMap(node) ? this.#pairs(node as YAMLMap.Parsed) : [];
    const pair = pairs.find((each) => keyText(each) === name);
    if (pair === undefined || pair.value === null) return undefined;
    const field = this.#child(pair.value, joinPath(this.path, name), false);
    return field.kind === "null" ? undefined : field;
  }

  /** Returns the items of a list; empty if it has no value. */
  items(): readonly Field[] {
    if (this.kind === "null") return [];
    const node = this.#resolved();
    if (node === undefined || !isSeq(node)) return this.fail("must be a list") ?? [];
    const items = node.items as readonly (ParsedNode | null)[];
    return items.map((item, index) => this.#child(item ?? node, `${this.path}[${index}]`, item === null));
  }

  /** Returns the items of a list, or a single value as a list. */
  oneOrMore(): readonly Field[] {
    return this.kind === "scalar" ? [this] : this.items();
  }

  /**
   * Returns texts, numbers and booleans as they are written, with variables replaced. Reports other
   * values.
   */
  text(): string {
    if (this.#isOverLimit()) return "";
    const node = this.#resolved();
    if (node === undefined || !isScalar(node) || node.value === null) return this.fail("must be text") ?? "";
    const written = typeof node.value === "string" ? node.value : (node.source ?? String(node.value));
    const { text, problem } = this.#options.expand?.(written) ?? { text: written };
    if (problem !== undefined) this.fail(problem);
    return text;
  }

  switch(): boolean {
    const text = this.text();
    if (text === "true" || text === "false") return text === "true";
    return this.fail("must be true or false") ?? false;
  }

  whole(): number {
    const text = this.text();
    return /^\d{1,9}$/.test(text) ? Number(text) : (this.fail("must be a whole number") ?? 0);
  }

  /** Reports a problem that makes the file unusable. */
  fail(message: string): undefined {
    this.#options.fail(this.#problem(message));
    return undefined;
  }

  /** Reports that this field can't be converted. */
  lose(message: string): undefined {
    this.#options.lose(this.#problem(message));
    return undefined;
  }

  #problem(message: string): Problem {
    return { position: this.document.positionOf(this.node), path: this.path, message };
  }

  #child(node: ParsedNode, path: string, isEmpty: boolean): Field {
    const count = this.#count;
    if (++count.values === MAX_VALUES) this.fail(`the document stands for more than ${MAX_VALUES} values`);
    return isEmpty
      ? new EmptyField(node, path, this.#options, count)
      : new Field(node, path, this.#options, count);
  }

  /**
   * Returns the pairs of a mapping, and those of the mappings in its merge key. Its own pairs take
   * precedence, then those of earlier mappings.
   */
  #pairs(map: YAMLMap.Parsed, seen = new Set<Node>()): readonly Pair[] {
    if (seen.has(map)) return [];
    seen.add(map);
    const found = new Map<string, Pair>();
    for (const pair of map.items) if (keyText(pair) !== MERGE) found.set(keyText(pair), pair);
    for (const { value } of map.items.filter((pair) => keyText(pair) === MERGE)) {
      const node = value === null ? undefined : this.document.resolve(value);
      const sources = node !== undefined && isSeq(node) ? (node.items as readonly ParsedNode[]) : [node];
      for (const source of sources) {
        const merged = source && this.document.resolve(source);
        if (merged === undefined || !isMap(merged)) this.fail('"<<" must name a mapping');
        else
          for (const pair of this.#pairs(merged as YAMLMap.Parsed, seen))
            if (!found.has(keyText(pair))) found.set(keyText(pair), pair);
      }
    }
    return [...found.values()];
  }

  /**
   * Whether the limit was exceeded. It was reported, and the rest of the document is treated as
   * empty.
   */
  #isOverLimit(): boolean {
    return this.#count.values >= MAX_VALUES;
  }

  #resolved(): Node | undefined {
    return this.document.resolve(this.node);
  }
}

/** A field without a value, such as `KEY:`. Its position is that of the key. */
class EmptyField extends Field {
  override get kind(): "null" {
    return "null";
  }

  override text(): string {
    return this.fail("must be text") ?? "";
  }
}

function joinPath(path: string, name: string): string {
  const step = /^[\w-]+$/.test(name) ? name : `[${JSON.stringify(name)}]`;
  if (path === "") return step;
  return step.startsWith("[") ? path + step : `${path}.${step}`;
}
