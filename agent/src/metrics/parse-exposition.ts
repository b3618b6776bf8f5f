/** A metric of the pod: the sum of all its series. */
export type ScrapedValue =
  | { readonly type: "gauge" | "counter"; readonly sum: number }
  /** The metric exists, but a sum of it would be meaningless. */
  | { readonly type: "unusable"; readonly why: string };

/** Returns a requested name in the exposition format's spelling, which allows only letters, digits, '_' and ':'. */
export function exposedName(name: string): string {
  return name.replace(/[^A-Za-z0-9_:]/g, "_");
}

/**
 * Parses the requested metrics from Prometheus' text format (and from OpenMetrics, where it is the same). The result
 * has the requested names as keys. Series with the same name are added up, whatever their labels. Values that are not
 * numbers and malformed lines are skipped.
 */
export function parseExposition(text: string, names: readonly string[]): ReadonlyMap<string, ScrapedValue> {
  const desired = new Map(names.map((name) => [exposedName(name), name]));
  const types = new Map<string, string>();
  const sums = new Map<string, number>();
  for (const line of linesOf(text)) {
    if (line.startsWith("#")) {
      const [, name, type] = /^#\s+TYPE\s+(\S+)\s+(\S+)/.exec(line) ?? [];
      if (name !== undefined && type !== undefined && isAbout(name, desired)) types.set(name, type);
      continue;
    }
    const name = nameOf(line);
    if (!desired.has(name)) continue;
    const value = numberAfter(line.slice(name.length));
    if (value !== undefined) sums.set(name, (sums.get(name) ?? 0) + value);
  }
  const found = new Map<string, ScrapedValue>();
  for (const [exposed, name] of desired) {
    const value = meaningOf(exposed, types, sums.get(exposed));
    if (value !== undefined) found.set(name, value);
  }
  return found;
}

/** Yields one line at a time, because splitting a megabyte at once would take much memory. */
function* linesOf(text: string): Generator<string> {
  for (let start = 0; start < text.length; ) {
    const end = text.indexOf("\n", start);
    const line = text.slice(start, end < 0 ? text.length : end).trim();
    if (line !== "") yield line;
    start = end < 0 ? text.length : end + 1;
  }
}

function nameOf(line: string): string {
  return /^[A-Za-z0-9_:]+/.exec(line)?.[0] ?? "";
}

/** Parses the part after a name: labels, if any, and the number. */
function numberAfter(rest: string): number | undefined {
  const after = rest.startsWith("{") ? rest.slice(endOfLabels(rest)) : rest;
  const [, text = ""] = /^\s+(\S+)/.exec(after) ?? [];
  const value = text === "" ? Number.NaN : Number(text);
  return Number.isFinite(value) ? value : undefined;
}

/**
 * Returns the offset after the closing brace, ignoring braces and quotes in labels' values. Returns the length if there
 * is no closing brace.
 */
function endOfLabels(text: string): number {
  let quoted = false;
  for (let at = 1; at < text.length; at++) {
    const char = text[at];
    if (quoted && char === "\\") at++;
    else if (char === '"') quoted = !quoted;
    else if (!quoted && char === "}") return at + 1;
  }
  return text.length;
}

const SUFFIXES = ["_total", "_sum", "_count", "_bucket"] as const;

/** Reports whether the type line's family includes a requested name. Series of a family may have suffixes. */
function isAbout(family: string, desired: ReadonlyMap<string, string>): boolean {
  return desired.has(family) || SUFFIXES.some((suffix) => desired.has(family + suffix));
}

function meaningOf(
  name: string,
  types: ReadonlyMap<string, string>,
  sum: number | undefined,
): ScrapedValue | undefined {
  const suffix = SUFFIXES.find((it) => name.endsWith(it)) ?? "";
  const type = types.get(name) ?? types.get(name.slice(0, name.length - suffix.length)) ?? "";
  if (["histogram", "summary", "gaugehistogram"].includes(type)) {
    if (suffix === "_sum" || suffix === "_count")
      return sum === undefined ? undefined : { type: "counter", sum };
    return { type: "unusable", why: `is a ${type}: scale by its _sum or _count` };
  }
  if (sum === undefined) return undefined;
  // Without a type line, the naming convention decides.
  const isCounter = type === "counter" || (type === "" && suffix === "_total");
  return { type: isCounter ? "counter" : "gauge", sum };
}
