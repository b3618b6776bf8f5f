const PATTERN = /\$(?:\$|([A-Za-z_]\w*)|\{([A-Za-z_]\w*)(?:(:?[-?+])([^{}]*))?\}|)/g;

/**
 * Replaces the variables `$NAME` and `${NAME}`, with defaults (`:-`, `-`), required values (`:?`,
 * `?`) and replacements (`:+`, `+`); `$$` becomes `$`. A variable without a value and a default is
 * a problem.
 */
export function interpolate(
  text: string,
  env: Readonly<Record<string, string | undefined>>,
): { readonly text: string; readonly problem: string | undefined } {
  let problem: string | undefined;
  const replaced = text.replaceAll(
    PATTERN,
    (match, bare?: string, braced?: string, operator = "", word = "") => {
      if (match === "$$") return "$";
      const name = bare ?? braced;
      if (name === undefined) {
        problem ??= 'has a "$" that begins no variable: write "$$" for the character';
        return match;
      }
      const value = env[name];
      const isSet = value !== undefined && !(operator.startsWith(":") && value === "");
      if (operator.endsWith("+")) return isSet ? word : "";
      if (isSet) return value;
      if (operator.endsWith("-")) return word;
      problem ??= `needs the variable ${name}, which is not set here${word === "" ? "" : `: ${word}`}`;
      return "";
    },
  );
  return { text: replaced, problem };
}
