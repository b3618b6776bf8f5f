import { RE2JS, RE2JSException } from "re2js";

/** The limit of a pattern's length: enough for long lists of alternatives. */
const MAX_BYTES = 512;
/** The limit of instructions of the matching program, in which repetitions are written out. */
const MAX_PROGRAM_SIZE = 2_000;

/**
 * Checks a regular expression; returns its fault, or undefined. Expressions run on every request, so they have RE2's syntax: it matches
 * in linear time, and has neither look-around nor back-references. The check happens at apply, so that the author gets the error
 * instead of a gateway.
 */
export function regularExpressionProblem(text: string): string | undefined {
  if (text === "") return "must not be empty";
  if (Buffer.byteLength(text) > MAX_BYTES) return `must not be longer than ${MAX_BYTES} bytes`;
  try {
    const size = RE2JS.compile(text).programSize();
    return size > MAX_PROGRAM_SIZE ? "has repetitions that make it too large" : undefined;
  } catch (error) {
    if (error instanceof RE2JSException)
      return `is not a regular expression of RE2: ${reasonOf(text, error.message)}`;
    throw error;
  }
}

function reasonOf(text: string, message: string): string {
  if (/\(\?<?[=!]/.test(text) && /Perl syntax|named capture/.test(message))
    return "it looks ahead or behind, which RE2 can't";
  if (/invalid escape sequence: `\\\d/.test(message)) return "it refers back to a group, which RE2 can't";
  return message.replace(/^error parsing regexp: /, "");
}
