import type { FieldSchema, MessageSchema } from "@forage/proto/forest-schema";
import { isMap, isSeq, type ParsedNode, type YAMLMap } from "yaml";
import { didYouMean } from "../command/suggest.ts";
import { checkScalar, describe } from "./check-scalar.ts";
import { isNull, keyText, type ManifestDocument, type Node } from "./document.ts";
import type { Problem } from "./problem.ts";

/** The generated table of messages; a test may give its own. */
export type Schema = Readonly<Record<string, MessageSchema>>;

/** A proto-JSON object with camelCase names, which `fromJSON` reads without loss. */
export type JsonObject = { [name: string]: unknown };

/** Deeper than any message of the contract; anchors that contain themselves end here. */
const maxDepth = 64;
/** Values in one document, repeated aliases counted each time: a few lines of aliases can stand for billions. */
const maxValues = 200_000;

/** Checks one document against its schema. Finds every problem, not only the first. */
export class MessageChecker {
  readonly problems: Problem[] = [];
  readonly #schema: Schema;
  readonly #document: ManifestDocument;
  #values = 0;

  constructor(schema: Schema, document: ManifestDocument) {
    this.#schema = schema;
    this.#document = document;
  }

  /** Undefined if it isn't even a mapping. Fields with problems are left out. */
  check(node: ParsedNode, type: string, path: string, depth = 0): JsonObject | undefined {
    const map = this.#resolve(node, path);
    if (map === undefined) return undefined;
    if (!isMap(map)) return this.#fail(node, path, "must be a mapping");
    if (depth > maxDepth) return this.#fail(node, path, "is nested too deeply");
    const schema = this.#schema[type];
    if (schema === undefined) throw new TypeError(`the schema lacks ${type}`);
    const object: JsonObject = {};
    const taken = new Map<string, string>();
    for (const pair of (map as YAMLMap.Parsed).items) {
      const key = keyText(pair);
      const field = schema.fields.find(({ name, jsonName }) => name === key || jsonName === key);
      const fieldPath = join(path, key);
      if (field === undefined) this.#failUnknown(pair.key, fieldPath, key, schema);
      else if (this.#isFree(field, pair.key, fieldPath, key, taken, pair.value)) {
        const value = this.#checkField(pair.value, field, fieldPath, depth + 1);
        if (value !== undefined) object[field.jsonName] = value;
      }
    }
    return object;
  }

  /** A field may stand in one spelling only, and of a oneof only one member. */
  #isFree(
    field: FieldSchema,
    keyNode: ParsedNode,
    path: string,
    key: string,
    taken: Map<string, string>,
    value: ParsedNode | null,
  ): value is ParsedNode {
    if (value === null) return false;
    const node = this.#resolve(value, path);
    // In proto-JSON null is as good as absent.
    if (node === undefined || isNull(node)) return false;
    const before = taken.get(field.jsonName);
    if (before !== undefined) {
      this.#fail(keyNode, path, `is the same field as ${before}`);
      return false;
    }
    taken.set(field.jsonName, key);
    if (field.oneof === undefined) return true;
    const member = taken.get(`oneof ${field.oneof}`);
    if (member !== undefined) {
      this.#fail(keyNode, path, `can't stand beside ${member}: only one of them may be given`);
      return false;
    }
    taken.set(`oneof ${field.oneof}`, key);
    return true;
  }

  #checkField(node: ParsedNode, field: FieldSchema, path: string, depth: number): unknown {
    if (field.map) return this.#checkMap(node, field, path, depth);
    return field.repeated
      ? this.#checkList(node, field, path, depth)
      : this.#checkValue(node, field, path, depth);
  }

  #checkMap(node: ParsedNode, field: FieldSchema, path: string, depth: number): unknown {
    const map = this.#resolve(node, path);
    if (!isMap(map)) return this.#fail(node, path, `must be a mapping of names to ${describe(field)}`);
    const object: [string, unknown][] = [];
    for (const pair of (map as YAMLMap.Parsed).items) {
      const key = keyText(pair);
      const value = this.#checkItem(pair.value, pair.key, field, `${path}[${JSON.stringify(key)}]`, depth);
      if (value !== undefined) object.push([key, value]);
    }
    // Not by assignment: "__proto__" is a key like any other.
    return Object.fromEntries(object);
  }

  #checkList(node: ParsedNode, field: FieldSchema, path: string, depth: number): unknown {
    const list = this.#resolve(node, path);
    if (!isSeq(list)) return this.#fail(node, path, "must be a list");
    return (list.items as (ParsedNode | null)[]).map((item, index) =>
      this.#checkItem(item, node, field, `${path}[${index}]`, depth),
    );
  }

  #checkItem(
    item: ParsedNode | null,
    near: ParsedNode,
    field: FieldSchema,
    path: string,
    depth: number,
  ): unknown {
    if (item === null) return this.#fail(near, path, `must be ${describe(field)}`);
    const node = this.#resolve(item, path);
    if (node === undefined) return undefined;
    if (isNull(node)) return this.#fail(item, path, `must be ${describe(field)}`);
    return this.#checkValue(item, field, path, depth);
  }

  #checkValue(node: ParsedNode, field: FieldSchema, path: string, depth: number): unknown {
    if (field.kind === "message") return this.check(node, field.type, path, depth);
    const resolved = this.#resolve(node, path);
    if (resolved === undefined) return undefined;
    const checked = checkScalar(resolved, field);
    return checked.ok ? checked.value : this.#fail(node, path, checked.message);
  }

  #resolve(node: ParsedNode, path: string): Node | undefined {
    if (++this.#values === maxValues)
      this.#fail(node, path, `the document stands for more than ${maxValues} values`);
    if (this.#values >= maxValues) return undefined;
    const resolved = this.#document.resolve(node);
    return resolved ?? this.#fail(node, path, "there is no anchor of this name before it");
  }

  #failUnknown(keyNode: ParsedNode, path: string, key: string, schema: MessageSchema): void {
    if (key === "<<") {
      this.#fail(keyNode, path, "merge keys are not supported: write the fields out");
      return;
    }
    const camelCase = /[A-Z]/.test(key);
    const names = schema.fields.map(({ name, jsonName }) => (camelCase ? jsonName : name));
    this.#fail(keyNode, path, `unknown field "${key}"${didYouMean(key, names) || knownFields(names)}`);
  }

  #fail(node: ParsedNode, path: string, message: string): undefined {
    this.problems.push({ position: this.#document.positionOf(node), path, message });
    return undefined;
  }
}

function knownFields(names: readonly string[]): string {
  return names.length === 0 ? "; it has no fields" : `; there are ${names.join(", ")}`;
}

function join(path: string, key: string): string {
  return path === "" ? key : `${path}.${key}`;
}
