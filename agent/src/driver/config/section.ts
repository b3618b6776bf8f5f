import { messageOf } from "@forage/common/message-of";
import type { Option } from "./option.ts";

/** Longer text is truncated in errors. */
const MAX_SHOWN_CHARACTERS = 80;

/**
 * Reads the attributes of one block. An invalid attribute is added to `problems` with its path and then treated as
 * absent, so that one pass finds every problem. Nomad sends null for an absent attribute.
 */
export class Section {
  readonly path: string;
  readonly #values: ReadonlyMap<string, unknown>;
  readonly #problems: string[];

  constructor(path: string, value: unknown, options: readonly Option[], problems: string[]) {
    this.path = path;
    this.#problems = problems;
    const entries = isRecord(value) ? Object.entries(value) : [];
    if (!isRecord(value)) problems.push(`${path}: must be a block, and is ${describe(value)}`);
    const known = new Map(options.map((option) => [option.name, option]));
    for (const [name, content] of entries) {
      const option = known.get(name);
      if (option === undefined) problems.push(`${path}.${shown(name)}: there is no such option`);
      else if (option.kind === "refused" && content !== null && content !== undefined)
        problems.push(`${path}.${name}: ${option.reason}`);
    }
    this.#values = new Map(entries.filter(([, it]) => it !== null && it !== undefined));
  }

  has(name: string): boolean {
    return this.#values.has(name);
  }

  problem(name: string, message: string): void {
    this.#problems.push(`${this.path}.${name}: ${message}`);
  }

  text(name: string): string | undefined {
    return this.#typed(name, "a string", (value) => (typeof value === "string" ? value : undefined));
  }

  /** Returns a required, non-empty string, or "" if it is missing. */
  requiredText(name: string): string {
    const value = this.text(name);
    if (!this.has(name) || value === "") this.problem(name, "is required");
    return value ?? "";
  }

  flag(name: string, fallback: boolean): boolean {
    return (
      this.#typed(name, "true or false", (value) => (typeof value === "boolean" ? value : undefined)) ??
      fallback
    );
  }

  wholeNumber(name: string, min: number, max: number): number | undefined {
    return this.#typed(name, `a whole number from ${min} to ${max}`, (value) =>
      typeof value === "number" && Number.isInteger(value) && value >= min && value <= max
        ? value
        : undefined,
    );
  }

  texts(name: string): readonly string[] {
    const list =
      this.#typed(name, "a list of strings", (value) => (Array.isArray(value) ? value : undefined)) ?? [];
    return list.filter((item, index): item is string => {
      if (typeof item !== "string")
        this.problem(`${name}[${index}]`, `must be a string, and is ${describe(item)}`);
      return typeof item === "string";
    });
  }

  /** Parses a string. If `parse` throws, its message becomes the problem. */
  parsed<Value>(name: string, parse: (text: string) => Value): Value | undefined {
    const text = this.text(name);
    return text === undefined ? undefined : this.#attempt(name, text, parse);
  }

  parsedEach<Value>(name: string, parse: (text: string) => Value): readonly Value[] {
    return this.texts(name).flatMap((text, index) => {
      const value = this.#attempt(`${name}[${index}]`, text, parse);
      return value === undefined ? [] : [value];
    });
  }

  /** Returns a map of strings. Nomad sends a repeated block as a list of maps, which are merged. */
  map(name: string): Readonly<Record<string, string>> {
    const value = this.#values.get(name);
    const merged = new Map<string, string>();
    for (const part of Array.isArray(value) ? value : value === undefined ? [] : [value]) {
      if (!isRecord(part)) {
        this.problem(name, `must be a map of strings, and is ${describe(part)}`);
        continue;
      }
      for (const [key, text] of Object.entries(part)) {
        if (typeof text === "string") merged.set(key, text);
        else this.problem(`${name}.${shown(key)}`, `must be a string, and is ${describe(text)}`);
      }
    }
    return Object.fromEntries(merged);
  }

  /** Parses each value of a map. */
  parsedMap<Value>(name: string, parse: (key: string, text: string) => Value): readonly Value[] {
    return Object.entries(this.map(name)).flatMap(([key, text]) => {
      const value = this.#attempt(`${name}.${shown(key)}`, text, (it) => parse(key, it));
      return value === undefined ? [] : [value];
    });
  }

  section(name: string, options: readonly Option[]): Section | undefined {
    const value = this.#values.get(name);
    return value === undefined
      ? undefined
      : new Section(`${this.path}.${name}`, value, nested(options, name), this.#problems);
  }

  sections(name: string, options: readonly Option[]): readonly Section[] {
    const list =
      this.#typed(name, "a list of blocks", (value) => (Array.isArray(value) ? value : undefined)) ?? [];
    return list.map(
      (value, index) =>
        new Section(`${this.path}.${name}[${index}]`, value, nested(options, name), this.#problems),
    );
  }

  #typed<Value>(name: string, what: string, read: (value: unknown) => Value | undefined): Value | undefined {
    const value = this.#values.get(name);
    if (value === undefined) return undefined;
    const typed = read(value);
    if (typed === undefined) this.problem(name, `must be ${what}, and is ${describe(value)}`);
    return typed;
  }

  #attempt<Value>(name: string, text: string, parse: (text: string) => Value): Value | undefined {
    try {
      return parse(text);
    } catch (error) {
      this.problem(name, messageOf(error));
      return undefined;
    }
  }
}

/** Quotes text for a message and truncates it. */
export function shown(text: string): string {
  const cut = text.length > MAX_SHOWN_CHARACTERS ? `${text.slice(0, MAX_SHOWN_CHARACTERS)}…` : text;
  return /^[A-Za-z0-9_.-]+$/.test(cut) ? cut : JSON.stringify(cut.toWellFormed());
}

function nested(options: readonly Option[], name: string): readonly Option[] {
  const option = options.find((it) => it.name === name);
  return option?.kind === "block" ? option.options : [];
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return (
    typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof Uint8Array)
  );
}

/** Describes the type of a value, but never the value, which may be a secret. */
function describe(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "a list";
  if (value instanceof Uint8Array) return "bytes";
  return typeof value === "object" ? "a map" : `a ${typeof value}`;
}
