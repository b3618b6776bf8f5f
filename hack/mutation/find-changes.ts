import { stripTypeScriptTypes } from "node:module";
import { blankTexts } from "../checks/scan-texts.ts";

/** A replacement of one line by a wrong one. */
export interface Change {
  /** The line number, from 1. */
  readonly line: number;
  readonly before: string;
  /** The new line. Empty if the line is removed. */
  readonly after: string;
}

/** Faults that a programmer could make: a pattern of an operator between two operands, and the wrong operator. */
const OPERATORS: readonly (readonly [RegExp, string])[] = [
  [/ < /g, " <= "],
  [/ <= /g, " < "],
  [/ > /g, " >= "],
  [/ >= /g, " > "],
  [/ === /g, " !== "],
  [/ !== /g, " === "],
  [/ && /g, " || "],
  [/ \|\| /g, " && "],
  [/ \+ /g, " - "],
  [/ - /g, " + "],
  [/\bMath\.min\b/g, "Math.max"],
  [/\bMath\.max\b/g, "Math.min"],
  [/\btrue\b/g, "false"],
  [/\bfalse\b/g, "true"],
  // The block is never entered.
  [/(?<=\bif \()(?!.* \|\| )(?=.*\) \{$)/g, "false && "],
];
/**
 * Matches a guard or a step that fills its line: a call, an assignment to a field or a conditional statement without a
 * block.
 */
const STEP =
  /^\s*(?:(?:await |void )?(?:this\.|[a-z#])[\w.#?!]*\(.*\);|this\.[\w.#]+ (?:[-+?&|]{0,2}=) .*;|if \(.*;)$/;
/** Matches lines that only report, declare, import or keep a parameter. */
const DECIDES_NOTHING =
  /^\s*this\.#\w+ = [\w.]+;$|^\s*(?:import\b|export (?:type|interface|\{|\*)|type\b|interface\b|readonly\b|throw\b|super\()|\b(?:log|logger)\??\.(?:trace|debug|info|warn|error|fatal)\(/;

/**
 * Returns changes of single lines in the order of the lines. Some of them may not be valid programs: see `canBeParsed`.
 */
export function findChanges(source: string): Change[] {
  const lines = source.split("\n");
  return blankTexts(source)
    .split("\n")
    .flatMap((code, index) => {
      const before = lines[index] ?? "";
      return changesOf(code, before).map((after) => ({ line: index + 1, before, after }));
    });
}

/** Returns the source with the change applied. */
export function makeChange(source: string, { line, before, after }: Change): string {
  const lines = source.split("\n");
  if (lines[line - 1] !== before) throw new Error(`line ${line} isn't ${JSON.stringify(before)}`);
  return lines.with(line - 1, after).join("\n");
}

function changesOf(code: string, line: string): string[] {
  if (DECIDES_NOTHING.test(code)) return [];
  const changed = OPERATORS.flatMap(([pattern, wrong]) =>
    [...code.matchAll(pattern)].map(
      ({ index, 0: { length } }) => line.slice(0, index) + wrong + line.slice(index + length),
    ),
  );
  return STEP.test(code) ? [...changed, ""] : changed;
}

/** Reports whether the source is a syntactically valid program. Its types may be wrong. */
export function canBeParsed(source: string): boolean {
  try {
    stripTypeScriptTypes(source);
    return true;
  } catch {
    return false;
  }
}
