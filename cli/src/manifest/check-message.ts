import { JsonMessageReader, type JsonObject, type JsonView, type Schema } from "@forage/proto/json-message";
import { isMap, isSeq, type ParsedNode, type YAMLMap } from "yaml";
import { didYouMean } from "../command/suggest.ts";
import { isNull, keyText, type ManifestDocument } from "./document.ts";
import type { Problem } from "./problem.ts";

/**
 * The most values in one document. Repeated aliases count each time, because a few lines of aliases
 * can expand to billions of values.
 */
const MAX_VALUES = 200_000;

/**
 * A value of the document. It is `undefined` if no value was given, as in `key:`; its problems are
 * then reported at `near`.
 */
interface Place {
  readonly node: ParsedNode | undefined;
  readonly near: ParsedNode;
}

/** Checks one document against its schema, and reports all problems. */
export class MessageChecker {
  readonly problems: Problem[] = [];
  readonly #reader: JsonMessageReader<Place>;
  readonly #document: ManifestDocument;
  #values = 0;

  constructor(schema: Schema, document: ManifestDocument) {
    this.#document = document;
    this.#reader = new JsonMessageReader<Place>(schema, {
      view: (place, path) => this.#view(place, path),
      fail: (place, path, message) => this.#fail(place, path, message),
      keyProblem: (key) => (key === "<<" ? "merge keys are not supported: write the fields out" : undefined),
      suggest: didYouMean,
    });
  }

  /**
   * Returns the message without fields that have problems; undefined if the node is not a mapping.
   */
  check(node: ParsedNode, type: string, path: string): JsonObject | undefined {
    return this.#reader.read({ node, near: node }, type, path);
  }

  #view(place: Place, path: string): JsonView<Place> {
    const { node } = place;
    if (node === undefined) return { type: "null" };
    if (++this.#values === MAX_VALUES)
      this.#fail(place, path, `the document stands for more than ${MAX_VALUES} values`);
    if (this.#values >= MAX_VALUES) return { type: "unknown" };
    const resolved = this.#document.resolve(node);
    if (resolved === undefined) {
      this.#fail(place, path, "there is no anchor of this name before it");
      return { type: "unknown" };
    }
    if (isNull(resolved)) return { type: "null" };
    if (isMap(resolved)) return { type: "object", entries: entriesOf(resolved as YAMLMap.Parsed) };
    if (isSeq(resolved)) {
      const items = resolved.items as (ParsedNode | null)[];
      return { type: "list", items: items.map((item) => ({ node: item ?? undefined, near: item ?? node })) };
    }
    return { type: "scalar", value: resolved.value, source: resolved.source ?? "" };
  }

  #fail({ node, near }: Place, path: string, message: string): void {
    this.problems.push({ position: this.#document.positionOf(node ?? near), path, message });
  }
}

function* entriesOf(map: YAMLMap.Parsed): Iterable<{ key: string; keyNode: Place; value: Place }> {
  for (const pair of map.items) {
    const keyNode = { node: pair.key, near: pair.key };
    yield { key: keyText(pair), keyNode, value: { node: pair.value ?? undefined, near: pair.key } };
  }
}
