import { IdentityError } from "./error.ts";
import { isDigestText } from "./secret.ts";

/** A token that also names the authority whose server it may be sent to. */
export interface PinnedToken {
  /** `spkiPin` of the authority. */
  readonly pin: string;
  /** 12 hex digits; the key to find the token's record by. */
  readonly id: string;
  readonly secret: string;
}

/** Returns the token's text. INVALID_ARGUMENT when the pin is malformed. */
export function pinnedToken(prefix: string, { pin, id, secret }: PinnedToken): string {
  if (!isDigestText(pin)) throw new IdentityError("INVALID_ARGUMENT", "the authority's pin is malformed");
  return [prefix, pin, id, secret].join(".");
}

/** Takes a token apart. TOKEN_MALFORMED says what is wrong without repeating the token. */
export function parsePinnedToken(text: string, prefix: string, what: string): PinnedToken {
  const malformed = (problem: string): IdentityError =>
    new IdentityError("TOKEN_MALFORMED", `this isn't ${what}: ${problem}`);
  const parts = text.trim().split(".");
  const [first, pin = "", id = "", secret = ""] = parts;
  if (first !== prefix) throw malformed(`it must start with "${prefix}."`);
  if (parts.length !== 4) throw malformed(`it must have 4 parts between dots, and has ${parts.length}`);
  if (!isDigestText(pin)) throw malformed("its second part, the authority's hash, is damaged");
  if (!isTokenId(id)) throw malformed("its third part, the id, is damaged");
  if (!isDigestText(secret)) throw malformed("its last part, the secret, is damaged or cut off");
  return { pin, id, secret };
}

/** Reports whether the text can be the id of a token. Ids in requests come from strangers. */
export function isTokenId(text: string): boolean {
  return /^[0-9a-f]{12}$/.test(text);
}
