/**
 * Makes text from other sources safe for a terminal: characters that could move the cursor, colour
 * the screen or hide other text are shown as `\x1b`. Line ends are kept only with `lines`.
 */
export function plainText(text: string, { lines = false }: { readonly lines?: boolean } = {}): string {
  return text.replaceAll(/[\p{Cc}\p{Bidi_Control}\u2028\u2029]/gu, (character) => {
    if (character === "\n" && lines) return character;
    if (character === "\t") return " ";
    const code = character.codePointAt(0) ?? 0;
    if (code === 10) return "\\n";
    return code < 256
      ? `\\x${code.toString(16).padStart(2, "0")}`
      : `\\u${code.toString(16).padStart(4, "0")}`;
  });
}

/**
 * Returns the number of columns that a text occupies: wide East Asian characters and emoji occupy
 * two, combining marks none.
 */
export function displayWidth(text: string): number {
  // Most texts are ASCII.
  if (/^[\x20-\x7e]*$/.test(text)) return text.length;
  let width = 0;
  for (const character of text) {
    if (/^[\p{Mn}\p{Me}\p{Cf}]$/u.test(character)) continue;
    width +=
      /^[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Emoji_Presentation}\uff01-\uff60]$/u.test(
        character,
      )
        ? 2
        : 1;
  }
  return width;
}
