/** The functions return what is wrong with the text, or undefined. */

/** Returns what is wrong with a text that contains a NUL, which can't be passed to a process. */
export function nulProblem(text: string): string | undefined {
  return text.includes("\0") ? "must not contain a NUL character" : undefined;
}

/** Rejects control characters in a text that becomes part of a line in a protocol or configuration. */
export function controlProblem(text: string): string | undefined {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  return /[\u0000-\u001f\u007f]/.test(text)
    ? "must not contain control characters or line breaks"
    : undefined;
}

/** Limits the length in bytes, as the kernel, protocols and the store do. */
export function lengthProblem(text: string, maxBytes: number): string | undefined {
  return Buffer.byteLength(text) > maxBytes ? `must not be longer than ${maxBytes} bytes` : undefined;
}

/** Returns `must be A, B or C`, unless the text is one of these or empty, which stands for the default. */
export function choiceProblem(text: string, choices: readonly string[]): string | undefined {
  if (text === "" || choices.includes(text)) return undefined;
  const meant = choices.find((choice) => choice.toLowerCase() === text.toLowerCase());
  return meant === undefined ? `must be ${listed(choices)}` : `must be written ${meant}`;
}

/** Returns `must be A, B or C`, unless the text is one of these. For fields without a default. */
export function requiredChoiceProblem(text: string, choices: readonly string[]): string | undefined {
  return text === "" ? `must be ${listed(choices)}` : choiceProblem(text, choices);
}

function listed(choices: readonly string[]): string {
  return choices.length < 2
    ? choices.join("")
    : `${choices.slice(0, -1).join(", ")} or ${choices.at(-1) ?? ""}`;
}
