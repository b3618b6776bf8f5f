import type { FieldSchema, MessageSchema } from "../gen/forest-schema.ts";
import { checkScalar, describe, type JsonScalar, type Suggest } from "./json-scalar.ts";

/** The schemas of messages by full name. */
export type Schema = Readonly<Record<string, MessageSchema>>;

/** A proto-JSON object with camelCase names, which `fromJSON` reads without loss. */
export interface JsonObject {
  [name: string]: unknown;
}

export interface JsonEntry<Node> {
  readonly key: string;
  /** The path at which faults of the key are reported. */
  readonly keyNode: Node;
  readonly value: Node;
}

/** A node converted to JSON. `unknown` nodes are left out, because their fault was already reported. */
export type JsonView<Node> =
  | { readonly type: "null" | "unknown" }
  | { readonly type: "object"; readonly entries: Iterable<JsonEntry<Node>> }
  | { readonly type: "list"; readonly items: Iterable<Node> }
  | ({ readonly type: "scalar" } & JsonScalar);

/** The operations that the reader needs for a notation: parsed JSON, or YAML with positions, aliases and comments. */
export interface JsonNotation<Node> {
  view(node: Node, path: string): JsonView<Node>;
  fail(node: Node, path: string, message: string): void;
  /** Returns a fault of the notation itself for a key that isn't a field, such as a merge key. */
  keyProblem?(key: string): string | undefined;
  readonly suggest: Suggest;
}

/**
 * The maximum depth of nesting, deeper than any message of the contract. It also ends values that contain themselves.
 */
const MAX_DEPTH = 64;
/** The number of characters to which a key is cut in messages, enough to find it. */
const MAX_KEY_LENGTH = 100;

/** Reads a message in proto-JSON form and reports all faults, not only the first. */
export class JsonMessageReader<Node> {
  readonly #schema: Schema;
  readonly #notation: JsonNotation<Node>;

  constructor(schema: Schema, notation: JsonNotation<Node>) {
    this.#schema = schema;
    this.#notation = notation;
  }

  /** Reads a message of a type. Returns `undefined` if the node isn't an object. Leaves out fields with faults. */
  read(node: Node, type: string, path = "", depth = 0): JsonObject | undefined {
    const view = this.#notation.view(node, path);
    if (view.type === "unknown") return undefined;
    if (view.type !== "object") return this.#fail(node, path, "must be a mapping");
    if (depth > MAX_DEPTH) return this.#fail(node, path, "is nested too deeply");
    const schema = this.#schema[type];
    if (schema === undefined) throw new TypeError(`the schema lacks ${type}`);
    const object: JsonObject = {};
    const given = new Map<string, string>();
    for (const entry of view.entries) {
      const field = schema.fields.find(({ name, jsonName }) => name === entry.key || jsonName === entry.key);
      const at = join(path, entry.key);
      if (field === undefined) this.#failUnknown(entry, at, schema);
      else if (this.#isFree(field, entry, at, given)) {
        const value = this.#field(entry.value, field, at, depth + 1);
        if (value !== undefined) object[field.jsonName] = value;
      }
    }
    return object;
  }

  /**
   * Reports whether the reader should use the field's value, which it doesn't if it is null. Reports a second spelling
   * of a field, or a second member of a oneof, as a fault.
   */
  #isFree(field: FieldSchema, entry: JsonEntry<Node>, path: string, given: Map<string, string>): boolean {
    const { key, keyNode, value } = entry;
    const { type } = this.#notation.view(value, path);
    // In proto-JSON, null means absent.
    if (type === "null" || type === "unknown") return false;
    const before = given.get(field.jsonName);
    if (before !== undefined) {
      this.#fail(keyNode, path, `is the same field as ${before}`);
      return false;
    }
    given.set(field.jsonName, key);
    if (field.oneof === undefined) return true;
    const member = given.get(`oneof ${field.oneof}`);
    if (member !== undefined) {
      this.#fail(keyNode, path, `can't stand beside ${member}: only one of them may be given`);
      return false;
    }
    given.set(`oneof ${field.oneof}`, key);
    return true;
  }

  #field(node: Node, field: FieldSchema, path: string, depth: number): unknown {
    if (field.map) return this.#map(node, field, path, depth);
    return field.repeated ? this.#list(node, field, path, depth) : this.#value(node, field, path, depth);
  }

  #map(node: Node, field: FieldSchema, path: string, depth: number): unknown {
    const view = this.#notation.view(node, path);
    if (view.type !== "object")
      return this.#fail(node, path, `must be a mapping of names to ${describe(field)}`);
    const object: [string, unknown][] = [];
    for (const { key, value } of view.entries) {
      const item = this.#value(value, field, `${path}[${shownKey(key)}]`, depth);
      if (item !== undefined) object.push([key, item]);
    }
    // An assignment would treat "__proto__" specially, although it is an ordinary key here.
    return Object.fromEntries(object);
  }

  #list(node: Node, field: FieldSchema, path: string, depth: number): unknown {
    const view = this.#notation.view(node, path);
    if (view.type !== "list") return this.#fail(node, path, "must be a list");
    return [...view.items].map((item, index) => this.#value(item, field, `${path}[${index}]`, depth));
  }

  #value(node: Node, field: FieldSchema, path: string, depth: number): unknown {
    const view = this.#notation.view(node, path);
    if (view.type === "unknown") return undefined;
    if (view.type === "null") return this.#fail(node, path, `must be ${describe(field)}`);
    if (field.kind === "message") return this.read(node, field.type, path, depth);
    if (view.type !== "scalar") {
      const kind = view.type === "object" ? "mapping" : "list";
      return this.#fail(node, path, `must be ${describe(field)}, not a ${kind}`);
    }
    const checked = checkScalar(view, field, this.#notation.suggest);
    return checked.ok ? checked.value : this.#fail(node, path, checked.message);
  }

  #failUnknown({ key, keyNode }: JsonEntry<Node>, path: string, schema: MessageSchema): void {
    const problem = this.#notation.keyProblem?.(key);
    const camelCase = /[A-Z]/.test(key);
    const names = schema.fields.map(({ name, jsonName }) => (camelCase ? jsonName : name));
    const help = this.#notation.suggest(key, names) || knownFields(names);
    this.#fail(keyNode, path, problem ?? `unknown field "${shownKey(key)}"${help}`);
  }

  #fail(node: Node, path: string, message: string): undefined {
    this.#notation.fail(node, path, message);
    return undefined;
  }
}

function knownFields(names: readonly string[]): string {
  return names.length === 0 ? "; it has no fields" : `; there are ${names.join(", ")}`;
}

function join(path: string, key: string): string {
  return path === "" ? shownKey(key) : `${path}.${shownKey(key)}`;
}

function shownKey(key: string): string {
  return (key.length <= MAX_KEY_LENGTH ? key : `${key.slice(0, MAX_KEY_LENGTH)}…`).toWellFormed();
}
