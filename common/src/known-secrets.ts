import { Buffer } from "node:buffer";
import { LEFT_OUT } from "./scrub-text.ts";

/** Shorter values would match by chance. */
const MIN_LENGTH = 6;
/** The number of leading characters by which values are indexed. */
const INDEX_LENGTH = 6;
/**
 * A longer value is recognised by its beginning. The text after it is compared too, so that the whole value is removed.
 */
const MAX_BEGINNING = 256;
const FILTER_SIZE = 1 << 16;

/** Values of one length, either whole or as beginnings. */
interface SameLength {
  readonly length: number;
  readonly forms: Map<string, string>;
}

/** Finds known secret values in any text, also in base64, URLs and JSON, in a single pass. */
export class KnownSecrets {
  readonly #filter = new Uint8Array(FILTER_SIZE);
  /** The values by their first characters, the longest first, because a secret may begin with another one. */
  readonly #byBeginning = new Map<string, SameLength[]>();

  constructor(values: Iterable<string>) {
    // If several values have the same compared beginning, keep the longest one.
    const forms = [...new Set(formsOf(values))].sort((a, b) => a.length - b.length);
    for (const form of forms) {
      this.#filter[hashAt(form, 0)] = 1;
      const beginning = form.slice(0, INDEX_LENGTH);
      const lengths = this.#byBeginning.get(beginning) ?? [];
      const length = Math.min(form.length, MAX_BEGINNING);
      if (lengths[0]?.length !== length) lengths.unshift({ length, forms: new Map() });
      lengths[0]?.forms.set(form.slice(0, length), form);
      this.#byBeginning.set(beginning, lengths);
    }
  }

  /** Returns the text without the values. */
  scrub(text: string): string {
    const parts: string[] = [];
    let from = 0;
    for (let at = 0; at <= text.length - INDEX_LENGTH; ) {
      const length = this.#filter[hashAt(text, at)] === 1 ? this.#lengthAt(text, at) : 0;
      if (length === 0) {
        at++;
        continue;
      }
      parts.push(text.slice(from, at), LEFT_OUT);
      at += length;
      from = at;
    }
    return parts.length === 0 ? text : parts.join("") + text.slice(from);
  }

  /** Returns the length of the value at this position, or 0 if there is none. */
  #lengthAt(text: string, at: number): number {
    for (const { length, forms } of this.#byBeginning.get(text.slice(at, at + INDEX_LENGTH)) ?? []) {
      const form = forms.get(text.slice(at, at + length));
      if (form === undefined) continue;
      let found = length;
      while (found < form.length && text.charCodeAt(at + found) === form.charCodeAt(found)) found++;
      return found;
    }
    return 0;
  }
}

function hashAt(text: string, at: number): number {
  const [a, b, c] = [text.charCodeAt(at), text.charCodeAt(at + 1), text.charCodeAt(at + 2)];
  return (a * 961 + b * 31 + c) % FILTER_SIZE;
}

/** Yields the forms of values. Each line of a multi-line value is a form of its own. */
function* formsOf(values: Iterable<string>): Generator<string> {
  for (const value of values) {
    for (const part of new Set([value, value.trim(), ...value.split("\n").map((line) => line.trim())])) {
      if (part.length < MIN_LENGTH) continue;
      yield part;
      yield JSON.stringify(part).slice(1, -1);
      yield encodeURIComponent(part.toWellFormed());
      yield* base64Forms(part);
    }
  }
}

/**
 * Yields the base64 forms of a value, which may begin at three offsets in a group. Characters that depend on neighbours
 * are left out.
 */
function* base64Forms(value: string): Generator<string> {
  for (const before of [0, 1, 2]) {
    const bytes = Buffer.concat([Buffer.alloc(before), Buffer.from(value)]);
    for (const encoding of ["base64", "base64url"] as const) {
      const text = bytes.toString(encoding).replace(/=+$/, "");
      const form = text.slice(before === 0 ? 0 : before + 1, bytes.length % 3 === 0 ? undefined : -1);
      if (form.length >= MIN_LENGTH) yield form;
    }
  }
}
