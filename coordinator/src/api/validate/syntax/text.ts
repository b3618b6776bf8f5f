/** Each returns what is wrong with the text, or undefined. */

/** Returns the fault of a text with a NUL, which can't be passed to a process. */
export function nulProblem(text: string): string | undefined {
  return text.includes("\0") ? "must not hold a NUL character" : undefined;
}

/** Describes control characters in text that ends up in lines of a protocol or a configuration. */
export function controlProblem(text: string): string | undefined {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  return /[\u0000-\u001f\u007f]/.test(text) ? "must not hold control characters or line breaks" : undefined;
}

/** Counts bytes, as limits of the kernel, of protocols and of the store do. */
export function lengthProblem(text: string, maxBytes: number): string | undefined {
  return Buffer.byteLength(text) > maxBytes ? `must not be longer than ${maxBytes} bytes` : undefined;
}

/** `must be A, B or C`, unless the text is one of these or empty, which stands for the default. */
export function choiceProblem(text: string, choices: readonly string[]): string | undefined {
  if (text === "" || choices.includes(text)) return undefined;
  const meant = choices.find((choice) => choice.toLowerCase() === text.toLowerCase());
  return meant === undefined ? `must be ${listed(choices)}` : `must be written ${meant}`;
}

/** The same for a field that has no default. */
export function requiredChoiceProblem(text: string, choices: readonly string[]): string | undefined {
  return text === "" ? `must be ${listed(choices)}` : choiceProblem(text, choices);
}

function listed(choices: readonly string[]): string {
  return choices.length < 2
    ? choices.join("")
    : `${choices.slice(0, -1).join(", ")} or ${choices.at(-1) ?? ""}`;
}
