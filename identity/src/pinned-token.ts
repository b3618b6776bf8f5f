import { IdentityError } from "./error.ts";
import { isDigestText } from "./secret.ts";

/** A token that includes the pin of the authority to whose servers it may be sent. */
export interface PinnedToken {
  /** `spkiPin` of the authority. */
  readonly pin: string;
  /** 12 hex digits. The token's record is looked up by this id. */
  readonly id: string;
  readonly secret: string;
}

/** Returns the token's text. @throws IdentityError INVALID_ARGUMENT if the pin is malformed. */
export function pinnedToken(prefix: string, { pin, id, secret }: PinnedToken): string {
  if (!isDigestText(pin)) throw new IdentityError("INVALID_ARGUMENT", "the authority's pin is malformed");
  return [prefix, pin, id, secret].join(".");
}

/** Parses a token. @throws IdentityError TOKEN_MALFORMED. Its message names the fault and doesn't repeat the token. */
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

/** Reports whether the text has the form of a token's id. Requests from strangers contain such ids. */
export function isTokenId(text: string): boolean {
  return /^[0-9a-f]{12}$/.test(text);
}
