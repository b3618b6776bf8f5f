/**
 * Splits a command line into words as a shell does, with quotes and backslashes. Returns undefined
 * for an unclosed quote.
 */
export function splitWords(line: string): readonly string[] | undefined {
  const words: string[] = [];
  let rest = line.trimStart();
  while (rest !== "") {
    let word = "";
    while (rest !== "" && !/^\s/.test(rest)) {
      const [part, plain, single, double, escaped] =
        /^(?:([^\s'"\\]+)|'([^']*)'|"((?:[^"\\]|\\.)*)"|\\(.))/s.exec(rest) ?? [];
      if (part === undefined) return undefined;
      word += plain ?? single ?? double?.replaceAll(/\\([$`"\\])/g, "$1") ?? escaped ?? "";
      rest = rest.slice(part.length);
    }
    words.push(word);
    rest = rest.trimStart();
  }
  return words;
}
