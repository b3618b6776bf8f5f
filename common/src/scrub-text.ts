/** Replaces possible secrets. */
export const LEFT_OUT = "[left out]";

/** Parts of names whose values are secret, such as `db_password` or `X-Api-Key`. */
const SECRET_NAMES =
  "password|passwd|passphrase|secret|token|credentials?|authorization|api[_-]?key|access[_-]?key|private[_-]?key|signature";

/**
 * Each pattern keeps its first group. Repetitions are limited where a long run of one character would otherwise take
 * quadratic time.
 */
const PATTERNS: readonly RegExp[] = [
  // Without an end mark, the rest of the text counts as the key.
  /(-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----)[\s\S]*?(?:-----END|$)/g,
  // Join tokens, tokens of coordinators and API tokens.
  /(\bF[LC]T1\.)[\w.-]+/g,
  /(\bflt_)[\w-]+/g,
  // JSON web tokens.
  /(\beyJ)[\w-]{8,}\.[\w-]{8,}\.?[\w-]*/g,
  /(\b(?:bearer|basic)\s{1,5})[\w.~+/=-]{6,}/gi,
  // The user and the password of a URL.
  /(\b[a-z][a-z0-9+.-]{0,20}:\/\/)[^\s/?#"'<>@]{1,2000}@/gi,
  new RegExp(
    `([?&;][\\w.-]{0,40}(?:${SECRET_NAMES}|sig|auth|code|key)[\\w.-]{0,40}=)[^\\s&#"'<>\\\\]+`,
    "gi",
  ),
  // Names with these endings refer to something other than the secret: `secretName`, `tokenId`.
  new RegExp(
    `((?:${SECRET_NAMES})(?![\\w-]{0,40}(?:id|ids|name|names|file|files|path|kind|count|total|size|bytes)\\b)[\\w-]{0,40}\\\\?"?\\s{0,3}[=:]\\s{0,3}\\\\?["']?)[^\\s"',;&}\\\\\\[]{3,}`,
    "gi",
  ),
  // Access keys of S3.
  /(\b(?:AKIA|ASIA))[A-Z0-9]{16}\b/g,
];

/**
 * Returns the text without apparent secrets: keys, tokens, passwords in URLs, and values of parameters with such names.
 */
export function scrubText(text: string): string {
  return PATTERNS.reduce((rest, pattern) => rest.replace(pattern, `$1${LEFT_OUT}`), text);
}
