const encoder = new TextEncoder();
/** The decoder keeps a byte order mark, which is part of a value. */
const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
/**
 * The number of bytes converted by one call, because the number of arguments of a call is limited.
 */
const PART_LENGTH = 8_192;

/** Encodes a text as UTF-8 in base64. Works in browsers as well. */
export function encodeBase64(text: string): string {
  const bytes = encoder.encode(text);
  let binary = "";
  for (let at = 0; at < bytes.length; at += PART_LENGTH)
    binary += String.fromCharCode(...bytes.subarray(at, at + PART_LENGTH));
  return btoa(binary);
}

/** Decodes a text from UTF-8 in base64. Throws DOMException if it is malformed. */
export function decodeBase64(base64: string): string {
  return decoder.decode(Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0)));
}
