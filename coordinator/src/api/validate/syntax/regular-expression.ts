import { RE2JS, RE2JSException } from "re2js";

/** The limit of an expression in bytes: enough for long lists of alternatives. */
const MAX_BYTES = 512;
/** The limit of instructions in the compiled program, in which repetitions are expanded. */
const MAX_PROGRAM_SIZE = 2_000;

/**
 * Returns what is wrong with a regular expression. Undefined: it is valid. Expressions are evaluated for every request, so
 * they have RE2's syntax, which is matched in linear time and has neither look-around nor back-references. They are checked
 * at apply, before they reach a gateway.
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
    return "it uses look-around, which RE2 doesn't support";
  if (/invalid escape sequence: `\\\d/.test(message))
    return "it uses back-references, which RE2 doesn't support";
  return message.replace(/^error parsing regexp: /, "");
}
