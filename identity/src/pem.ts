import { createHash, X509Certificate } from "node:crypto";
import { IdentityError } from "./error.ts";

const CERTIFICATE_BLOCK = /-----BEGIN CERTIFICATE-----[A-Za-z0-9+/=\s]+-----END CERTIFICATE-----/g;
const PRIVATE_KEY_BLOCK =
  /-----BEGIN (?:EC )?PRIVATE KEY-----[A-Za-z0-9+/=\s]+-----END (?:EC )?PRIVATE KEY-----/;

/** Returns the certificates of a PEM text in their order; empty if there are none. Ignores other text. */
export function splitCertificates(pem: string): readonly string[] {
  return (pem.match(CERTIFICATE_BLOCK) ?? []).map((block) => `${block}\n`);
}

/** Returns the first private key of a PEM text, or `undefined`. */
export function findPrivateKey(pem: string): string | undefined {
  const block = pem.match(PRIVATE_KEY_BLOCK)?.[0];
  return block === undefined ? undefined : `${block}\n`;
}

/** Parses a certificate. @throws IdentityError CERTIFICATE_INVALID. */
export function readCertificate(pem: string): X509Certificate {
  try {
    return new X509Certificate(pem);
  } catch (cause) {
    throw new IdentityError("CERTIFICATE_INVALID", "the certificate can't be read", { cause });
  }
}

/** Returns the pin of a certificate: base64url of the SHA-256 of its public key's DER, 43 characters. */
export function spkiPin(certificate: X509Certificate): string {
  const spki = certificate.publicKey.export({ type: "spki", format: "der" });
  return createHash("sha256").update(spki).digest("base64url");
}

/**
 * Returns the pins of all authorities in a bundle, in order. A bundle has two authorities while one replaces the other.
 */
export function pinsOf(bundlePem: string): readonly string[] {
  return splitCertificates(bundlePem).map((pem) => spkiPin(readCertificate(pem)));
}

/** Joins bundles and drops duplicate certificates, keeping the first of each. */
export function mergeBundles(...bundles: readonly string[]): string {
  const all = bundles.flatMap(splitCertificates);
  return [...new Map(all.map((pem) => [readCertificate(pem).fingerprint256, pem])).values()].join("");
}
