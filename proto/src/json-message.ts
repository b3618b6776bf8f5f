import type { FieldSchema, MessageSchema } from "../gen/forest-schema.ts";
import { checkScalar, describe, type JsonScalar, type Suggest } from "./json-scalar.ts";

/** Messages by full name. */
export type Schema = Readonly<Record<string, MessageSchema>>;

/** A proto-JSON object with camelCase names, which `fromJSON` reads without a loss. */
export interface JsonObject {
  [name: string]: unknown;
}

export interface JsonEntry<Node> {
  readonly key: string;
  /** The path at which faults of the key are reported. */
  readonly keyNode: Node;
  readonly value: Node;
}

/** A node seen as JSON. `unknown`: it was reported already and is left out. */
export type JsonView<Node> =
  | { readonly kind: "null" | "unknown" }
  | { readonly kind: "object"; readonly entries: Iterable<JsonEntry<Node>> }
  | { readonly kind: "list"; readonly items: Iterable<Node> }
  | ({ readonly kind: "scalar" } & JsonScalar);

/** The operations that the reader needs of a notation: parsed JSON, or YAML with positions, aliases and comments. */
export interface JsonNotation<Node> {
  view(node: Node, path: string): JsonView<Node>;
  fail(node: Node, path: string, message: string): void;
  /** A fault of the notation itself in a key that is no field, such as a merge key. */
  keyProblem?(key: string): string | undefined;
  readonly suggest: Suggest;
}

/** Deeper than any message of the contract; values that contain themselves end here. */
const MAX_DEPTH = 64;
/** The limit of a key's length in messages: enough to find the key by. */
const MAX_KEY_LENGTH = 100;

/** Reads a message in proto-JSON form and reports every fault, not only the first. */
export class JsonMessageReader<Node> {
  readonly #schema: Schema;
  readonly #notation: JsonNotation<Node>;

  constructor(schema: Schema, notation: JsonNotation<Node>) {
    this.#schema = schema;
    this.#notation = notation;
  }

  /** Reads a message of the type. Returns undefined if the node isn't an object, and leaves out fields with faults. */
  read(node: Node, type: string, path = "", depth = 0): JsonObject | undefined {
    const view = this.#notation.view(node, path);
    if (view.kind === "unknown") return undefined;
    if (view.kind !== "object") return this.#fail(node, path, "must be a mapping");
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

  /** A field may be written in one spelling only, and of a oneof only one member. */
  #isFree(field: FieldSchema, entry: JsonEntry<Node>, path: string, given: Map<string, string>): boolean {
    const { key, keyNode, value } = entry;
    const { kind } = this.#notation.view(value, path);
    // In proto-JSON null means absent.
    if (kind === "null" || kind === "unknown") return false;
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
    if (view.kind !== "object")
      return this.#fail(node, path, `must be a mapping of names to ${describe(field)}`);
    const object: [string, unknown][] = [];
    for (const { key, value } of view.entries) {
      const item = this.#value(value, field, `${path}[${shownKey(key)}]`, depth);
      if (item !== undefined) object.push([key, item]);
    }
    // Not by assignment: "__proto__" is a key like any other.
    return Object.fromEntries(object);
  }

  #list(node: Node, field: FieldSchema, path: string, depth: number): unknown {
    const view = this.#notation.view(node, path);
    if (view.kind !== "list") return this.#fail(node, path, "must be a list");
    return [...view.items].map((item, index) => this.#value(item, field, `${path}[${index}]`, depth));
  }

  #value(node: Node, field: FieldSchema, path: string, depth: number): unknown {
    const view = this.#notation.view(node, path);
    if (view.kind === "unknown") return undefined;
    if (view.kind === "null") return this.#fail(node, path, `must be ${describe(field)}`);
    if (field.kind === "message") return this.read(node, field.type, path, depth);
    if (view.kind !== "scalar") {
      const kind = view.kind === "object" ? "mapping" : "list";
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
