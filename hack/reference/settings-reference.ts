import { basename, dirname, relative } from "node:path/posix";

export interface ReferenceOptions {
  /** The page's path in the checkout. */
  readonly page: string;
  /** The lines above the table. */
  readonly head: readonly string[];
  /** The schema of the file, as JSON Schema. A node may have a `form`, such as `HOST:PORT`, in place of a type. */
  readonly schema: unknown;
  /** The source of the schema. The comments above its keys are the meanings. */
  readonly source: string;
  /** The path of the keys of each part of the schema, by the start of the line at which the part begins. */
  readonly parts: Readonly<Record<string, string>>;
}

/** Returns the reference of a configuration file as a page: a row for each key with its type, limits, default and meaning. */
export function settingsReference(options: ReferenceOptions): string {
  const comments = commentsOf(options.source, options.parts);
  const rows = [...rowsOf(options.schema, "", comments)];
  const table = ["| key | value | default | meaning |", "| --- | --- | --- | --- |"];
  const cells = rows.map((row) => `| ${row.join(" | ")} |`);
  return [...options.head, "", ...table, ...cells.map((line) => withLinks(line, options.page)), ""].join(
    "\n",
  );
}

/** Matches the bars between alternatives of a form, but not those within brackets. */
const ALTERNATIVES = /\|(?![^[]*\])/;

type Row = readonly [key: string, value: string, byDefault: string, meaning: string];

function* rowsOf(node: unknown, path: string, comments: ReadonlyMap<string, string>): Generator<Row> {
  for (const [name, property] of Object.entries(fieldOf(node, "properties"))) {
    const key = path === "" ? name : `${path}.${name}`;
    const meaning = comments.get(key) ?? ("description" in property ? String(property.description) : "");
    const isSet = "default" in property && !["{}", "[]"].includes(JSON.stringify(property.default));
    const byDefault = isSet ? defaultOf(property) : "";
    const nested = nestedOf(property);
    if (nested !== undefined) {
      yield [code(key), nested.also, byDefault, meaning];
      yield* rowsOf(nested.node, key, comments);
      continue;
    }
    yield [code(key), typeOf(property), byDefault, meaning];
  }
}

/**
 * Returns the default of a setting. Settings with a form are written as text; a boolean among them is `on` or `off`.
 */
function defaultOf(property: object): string {
  const value: unknown = "default" in property ? property.default : undefined;
  if (!("form" in property)) return code(JSON.stringify(value));
  if (typeof value === "boolean") return code(value ? "on" : "off");
  return code(typeof value === "string" ? value : JSON.stringify(value));
}

/** Returns the node of a setting with keys of its own, which may also accept a plain word. */
function nestedOf(property: object): { readonly node: object; readonly also: string } | undefined {
  if ("properties" in property) return { node: property, also: "keys of its own" };
  const options = "anyOf" in property && Array.isArray(property.anyOf) ? property.anyOf : [];
  const node: unknown = options.find((option: object) => "properties" in option);
  if (typeof node !== "object" || node === null) return undefined;
  const words = options.filter((option: object) => "const" in option).map((option) => code(option.const));
  return { node, also: ["keys of its own", ...words].join(" or ") };
}

function typeOf(property: object): string {
  const { type, form, minimum, maximum, exclusiveMinimum, ...rest } = {
    type: "",
    form: undefined,
    minimum: undefined,
    maximum: undefined,
    exclusiveMinimum: undefined,
    ...property,
  };
  if ("enum" in rest && Array.isArray(rest.enum)) return rest.enum.map((word) => code(word)).join(", ");
  if (type === "array") return "list";
  if (type !== "number" && type !== "integer") {
    if (form !== undefined) return String(form).split(ALTERNATIVES).map(code).join(", ");
    return type === "boolean" ? "true or false" : "text";
  }
  const from = minimum ?? exclusiveMinimum;
  const word = type === "integer" ? "whole number" : "number";
  if (from === undefined || maximum === undefined) return word;
  return `${word}, ${exclusiveMinimum === undefined ? "" : "above "}${from} to ${maximum}`;
}

/**
 * Returns the comments above keys, by the keys' paths. Parses formatted sources only: one key per line, nested by
 * indentation.
 */
function commentsOf(source: string, parts: ReferenceOptions["parts"]): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  const parents: { readonly indent: number; readonly key: string }[] = [];
  let isInPart = false;
  let comment = "";
  for (const line of source.split("\n")) {
    const part = Object.entries(parts).find(([start]) => line.startsWith(start));
    if (part !== undefined) {
      isInPart = true;
      parents.splice(0, parents.length, ...(part[1] === "" ? [] : [{ indent: 0, key: part[1] }]));
    }
    if (line.startsWith("}")) isInPart = false;
    if (!isInPart) continue;
    const indent = line.length - line.trimStart().length;
    const text = /^\s*\/\*\* (.*) \*\/$/.exec(line)?.[1];
    if (text !== undefined) {
      comment = text;
      continue;
    }
    const key = /^\s*(\w+):/.exec(line)?.[1];
    if (key !== undefined) {
      while ((parents.at(-1)?.indent ?? -1) >= indent) parents.pop();
      const path = [...(parents.length > 0 ? [parents.at(-1)?.key] : []), key].join(".");
      if (comment !== "") found.set(path, comment);
      parents.push({ indent, key: path });
    }
    if (line.trim() !== "") comment = "";
  }
  return found;
}

/** Links the pages that comments mention by their paths. */
function withLinks(line: string, page: string): string {
  return line.replace(/\bdocs\/[\w/-]+\.md\b/g, (path) => {
    const target = relative(dirname(page), path);
    return `[${basename(path)}](${target})`;
  });
}

function fieldOf(node: unknown, name: string): Record<string, object> {
  if (typeof node !== "object" || node === null) return {};
  const value: unknown = Reflect.get(node, name);
  return typeof value === "object" && value !== null ? { ...value } : {};
}

function code(value: unknown): string {
  return `\`${String(value).replaceAll("|", "\\|")}\``;
}
