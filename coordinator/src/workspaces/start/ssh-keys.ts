import type { Field } from "../../api/validate/field.ts";

/** People have a few keys; each is compared at a login. */
const MAX_KEYS = 100;
/** An RSA key of 16,384 bits takes 2.8 KB. */
const MAX_KEY_LENGTH = 8_192;

/** One line of authorized_keys without options: the algorithm, the key in base64, and a comment. */
const KEY =
  /^(ssh-(rsa|ed25519|dss)|ecdsa-sha2-nistp(256|384|521)|sk-(ssh-ed25519|ecdsa-sha2-nistp256)@openssh\.com) [A-Za-z0-9+/]{20,}={0,2}( [^\r\n]*)?$/;

/** Finds faults of keys in the form of authorized_keys. */
export function checkSshKeys(
  keys: readonly string[],
  field: Field,
  { mayBeEmpty }: { readonly mayBeEmpty: boolean },
): void {
  if (keys.length === 0 && !mayBeEmpty) field.invalid("must name at least one key");
  if (keys.length > MAX_KEYS) field.invalid(`must have at most ${MAX_KEYS} entries`);
  for (const [index, key] of keys.slice(0, MAX_KEYS).entries()) {
    if (key.length > MAX_KEY_LENGTH)
      field.item(index).invalid(`must have at most ${MAX_KEY_LENGTH} characters`);
    else if (!KEY.test(key.trim()))
      field.item(index).invalid("must be a public key as in authorized_keys, without options");
  }
}
