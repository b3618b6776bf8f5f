import type { Field } from "../../api/validate/field.ts";

/** The most keys of a workspace. Users have a few, and each login compares them. */
const MAX_KEYS = 100;
/** The length limit of a key; an RSA key of 16,384 bits has 2.8 KB. */
const MAX_KEY_LENGTH = 8_192;

/**
 * Matches a line of authorized_keys without options: algorithm, key in base64, and an optional
 * comment.
 */
const KEY =
  /^(ssh-(rsa|ed25519|dss)|ecdsa-sha2-nistp(256|384|521)|sk-(ssh-ed25519|ecdsa-sha2-nistp256)@openssh\.com) [A-Za-z0-9+/]{20,}={0,2}( [^\r\n]*)?$/;

/** Adds a finding for each invalid key. Keys have the format of authorized_keys. */
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
