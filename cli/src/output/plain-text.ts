/**
 * Text of others for a terminal: what could move the cursor, colour the screen or hide other text is shown as `\x1b`,
 * and line ends too unless they are to stay.
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

/** Columns a text takes: wide East Asian characters and emoji take two, combining marks none. */
export function displayWidth(text: string): number {
  // By far most text is plain.
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
