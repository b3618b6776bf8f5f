import { randomBytes } from "node:crypto";
import { createAuthority, signLeaf } from "../../../src/certificates/self-signed/authority.ts";

/**
 * Returns the content of a secret with a certificate for the hostname, valid for 90 days from
 * `nowMs`.
 */
export async function aCertificate(
  hostname: string,
  nowMs = Date.now(),
): Promise<{ readonly "tls.crt": Buffer; readonly "tls.key": Buffer }> {
  const options = { nowMs, randomBytes };
  const { chainPem, keyPem } = await signLeaf(await createAuthority("test", options), hostname, options);
  return { "tls.crt": Buffer.from(chainPem), "tls.key": Buffer.from(keyPem) };
}
