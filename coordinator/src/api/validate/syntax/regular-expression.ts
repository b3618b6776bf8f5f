/**
 * Checks a regular expression. Expressions run on every request, so they have RE2's syntax: it matches in linear time, and has
 * neither look-around nor back-references. The check happens at apply, so that the author gets the error instead of a gateway.
 */
export function regularExpressionProblem(text: string): string | undefined {
  if (text === "") return "must not be empty";
  if (Buffer.byteLength(text) > maxBytes) return `must not be longer than ${maxBytes} bytes`;
  try {
    const size = new Pattern(text).parse();
    return size > maxSize ? "has repetitions that make it too large" : undefined;
  } catch (error) {
    if (error instanceof PatternProblem) return `is not a regular expression of RE2: ${error.message}`;
    throw error;
  }
}

/** Enough for long lists of alternatives. */
const maxBytes = 512;
/** Steps of the matching program, roughly, with repetitions written out. */
const maxSize = 2_000;
/** RE2's own limit for {n,m}. */
const maxRepeat = 1_000;
/** RE2 recurses, as this parser does. */
const maxDepth = 50;

const classNames =
  /^\[:\^?(alnum|alpha|ascii|blank|cntrl|digit|graph|lower|print|punct|space|upper|word|xdigit):\]/;
const groupStart = /^\((\?(:|P?<([A-Za-z_]\w*)>|[imsU]*(-[imsU]+)?[:)]))?/;

class PatternProblem extends Error {
  override readonly name = "PatternProblem";
}

/** A parser that only computes the size of an expression. */
class Pattern {
  readonly #text: string;
  readonly #groups = new Set<string>();
  #at = 0;
  #depth = 0;

  constructor(text: string) {
    this.#text = text;
  }

  parse(): number {
    const size = this.#alternatives();
    if (this.#at < this.#text.length) throw new PatternProblem("a ')' has no '('");
    return size;
  }

  #alternatives(): number {
    let size = this.#sequence();
    while (this.#take("|")) size += 1 + this.#sequence();
    return size;
  }

  #sequence(): number {
    let size = 0;
    while (this.#at < this.#text.length && !/[|)]/.test(this.#next())) {
      const atom = this.#atom();
      size += atom === undefined ? 0 : this.#repeated(atom);
    }
    return size;
  }

  /** The size of one element; undefined for flags, which match nothing and can't be repeated. */
  #atom(): number | undefined {
    const next = this.#next();
    if (next === "(") return this.#group();
    if (next === "[") return this.#class();
    if (next === "\\") return this.#escape(false);
    if ("*+?".includes(next) || this.#counts() !== undefined) {
      throw new PatternProblem(`'${next}' repeats nothing`);
    }
    this.#at += next.length;
    return 1;
  }

  #repeated(size: number): number {
    const times = this.#repetition();
    if (times === undefined) return size;
    this.#take("?");
    if (this.#repetition() !== undefined) throw new PatternProblem("a repetition is repeated");
    return size * Math.max(1, times);
  }

  /** How often the element before is written out; undefined if it isn't repeated. */
  #repetition(): number | undefined {
    if (this.#take("*") || this.#take("+") || this.#take("?")) return 1;
    const counts = this.#counts();
    if (counts === undefined) return undefined;
    const [text, min, max] = counts;
    if (min > maxRepeat || max > maxRepeat || min > max)
      throw new PatternProblem(`${text} must count from 0 to ${maxRepeat}, upwards`);
    this.#at += text.length;
    return max;
  }

  /** `{2}`, `{2,}` or `{2,5}` here; other braces stand for themselves. */
  #counts(): readonly [text: string, min: number, max: number] | undefined {
    const match = /^\{(\d{1,9})(,(\d{1,9})?)?\}/.exec(this.#rest());
    if (match === null) return undefined;
    const min = Number(match[1]);
    return [match[0], min, match[3] === undefined ? min : Number(match[3])];
  }

  #group(): number | undefined {
    const match = groupStart.exec(this.#rest());
    const [start = "", special, , name] = match ?? [];
    const after = this.#rest().slice(start.length);
    if (special === undefined && after.startsWith("?")) throw groupProblem(after);
    if (name !== undefined) {
      if (this.#groups.has(name)) throw new PatternProblem(`two groups are called ${name}`);
      this.#groups.add(name);
    }
    this.#at += start.length;
    if (special?.endsWith(")")) return undefined;
    if (++this.#depth > maxDepth) throw new PatternProblem(`groups are nested more than ${maxDepth} deep`);
    const size = this.#alternatives();
    if (!this.#take(")")) throw new PatternProblem("a '(' is not closed");
    this.#depth--;
    return size + 2;
  }

  #class(): number {
    this.#at++;
    this.#take("^");
    let first = true;
    let size = 1;
    while (first || this.#next() !== "]") {
      if (this.#at >= this.#text.length) throw new PatternProblem("a '[' is not closed");
      first = false;
      size++;
      const name = classNames.exec(this.#rest());
      if (name !== null) this.#at += name[0].length;
      else this.#range();
    }
    this.#at++;
    return size;
  }

  #range(): void {
    const from = this.#classCharacter();
    if (!/^-[^\]]/u.test(this.#rest())) return;
    this.#at++;
    const to = this.#classCharacter();
    if (from === undefined || to === undefined || from > to)
      throw new PatternProblem("a range of characters ends before it begins");
  }

  /** Its code point; undefined for a set such as \d. */
  #classCharacter(): number | undefined {
    const next = this.#next();
    if (next !== "\\") {
      this.#at += next.length;
      return next.codePointAt(0);
    }
    const start = this.#at;
    this.#escape(true);
    return codePointOf(this.#text.slice(start, this.#at));
  }

  #escape(inClass: boolean): number {
    const match = /^\\(x\{[0-9A-Fa-f]{1,6}\}|x[0-9A-Fa-f]{2}|[pP]\{\^?[A-Za-z_]{1,40}\}|[pP][A-Z]|.)/su.exec(
      this.#rest(),
    );
    const escaped = match?.[1];
    if (escaped === undefined) throw new PatternProblem("it ends in '\\'");
    const known = inClass ? /^[adDfnrsStvwW]$/ : /^[AabBdDfnrsStvwWz]$/;
    const punctuation = /^[!-/:-@[-`{-~]$/.test(escaped);
    if (!punctuation && !known.test(escaped) && !isCodePoint(escaped) && !isCategory(escaped)) {
      const why = /^\d$/.test(escaped)
        ? "refers back to a group, which RE2 can't"
        : "is not an escape of RE2";
      throw new PatternProblem(`\\${escaped} ${why}`);
    }
    this.#at += escaped.length + 1;
    return 1;
  }

  #take(text: string): boolean {
    if (!this.#text.startsWith(text, this.#at)) return false;
    this.#at += text.length;
    return true;
  }

  #next(): string {
    const code = this.#text.codePointAt(this.#at);
    return code === undefined ? "" : String.fromCodePoint(code);
  }

  #rest(): string {
    return this.#text.slice(this.#at);
  }
}

function groupProblem(after: string): PatternProblem {
  const looks = /^\?(<?[=!])/.test(after);
  return new PatternProblem(
    looks ? "it looks ahead or behind, which RE2 can't" : `'(${after.slice(0, 3)}' begins no group of RE2`,
  );
}

function isCodePoint(escaped: string): boolean {
  const digits = /^x\{?([0-9A-Fa-f]+)\}?$/.exec(escaped)?.[1];
  return digits !== undefined && Number.parseInt(digits, 16) <= 0x10ffff;
}

/** General categories and scripts have the same names in JavaScript. */
function isCategory(escaped: string): boolean {
  const name = /^[pP]\{?\^?([A-Za-z_]+)\}?$/.exec(escaped)?.[1];
  return name !== undefined && [`\\p{gc=${name}}`, `\\p{sc=${name}}`].some(compiles);
}

function compiles(source: string): boolean {
  try {
    new RegExp(source, "u");
    return true;
  } catch (error) {
    if (error instanceof SyntaxError) return false;
    throw error;
  }
}

const named: Readonly<Record<string, number>> = { a: 7, f: 12, t: 9, n: 10, r: 13, v: 11 };

function codePointOf(sequence: string): number | undefined {
  const body = sequence.slice(1);
  const hex = /^x\{?([0-9A-Fa-f]+)\}?$/.exec(body)?.[1];
  if (hex !== undefined) return Number.parseInt(hex, 16);
  if (body.length > 1 || /^[dDsSwW]$/.test(body)) return undefined;
  return named[body] ?? body.codePointAt(0);
}
