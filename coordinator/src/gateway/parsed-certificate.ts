import { createPrivateKey, X509Certificate } from "node:crypto";
import { splitCertificates } from "@forage/identity/pem";

/** A certificate with its key, in the form that gateways use. */
export interface ParsedCertificate {
  readonly chainPem: string;
  readonly keyPem: string;
  readonly validFromMs: number;
  readonly expiresMs: number;
  covers(hostname: string): boolean;
}

/** The keys in a secret, as in Kubernetes for the type kubernetes.io/tls. */
export const CHAIN_KEY = "tls.crt";
export const PRIVATE_KEY_KEY = "tls.key";

/** The most certificates in a chain, including the leaf. Usual chains are shorter. */
const MAX_CERTIFICATES = 10;

/**
 * Parses and validates a certificate. Throws an Error whose message names the problem, and contains
 * nothing of the key.
 */
export function parseCertificate(content: Readonly<Record<string, Uint8Array>>): ParsedCertificate {
  const chain = textOf(content, CHAIN_KEY);
  const keyPem = textOf(content, PRIVATE_KEY_KEY);
  const blocks = splitCertificates(chain);
  if (blocks.length === 0) throw new Error(`${CHAIN_KEY} holds no certificate in PEM`);
  if (blocks.length > MAX_CERTIFICATES)
    throw new Error(
      `${CHAIN_KEY} holds ${blocks.length} certificates; at most ${MAX_CERTIFICATES} are allowed`,
    );
  const [leaf] = blocks.map((pem, index) => readCertificate(pem, index));
  if (leaf === undefined || !matchesKey(leaf, keyPem))
    throw new Error(`${PRIVATE_KEY_KEY} is not the key of the first certificate in ${CHAIN_KEY}`);
  return {
    chainPem: blocks.map((pem) => `${pem.trim()}\n`).join(""),
    keyPem,
    validFromMs: Date.parse(leaf.validFrom),
    expiresMs: Date.parse(leaf.validTo),
    covers: (hostname) => coversName(leaf, hostname),
  };
}

function textOf(content: Readonly<Record<string, Uint8Array>>, key: string): string {
  const value = content[key];
  if (value === undefined || value.byteLength === 0)
    throw new Error(`it has no ${key}; a certificate needs ${CHAIN_KEY} and ${PRIVATE_KEY_KEY}`);
  return Buffer.from(value).toString("utf8");
}

function readCertificate(pem: string, index: number): X509Certificate {
  try {
    return new X509Certificate(pem);
  } catch (cause) {
    throw new Error(`certificate ${index + 1} of ${CHAIN_KEY} can't be read`, { cause });
  }
}

function matchesKey(leaf: X509Certificate, keyPem: string): boolean {
  let key: ReturnType<typeof createPrivateKey>;
  try {
    key = createPrivateKey(keyPem);
  } catch {
    // The cause is omitted, because it may quote the key.
    throw new Error(`${PRIVATE_KEY_KEY} is not a private key in PEM, or is encrypted`);
  }
  return leaf.checkPrivateKey(key);
}

/**
 * Reports whether the certificate covers the hostname. A wildcard hostname requires the same
 * wildcard in the certificate, because it stands for an open set of names.
 */
function coversName(leaf: X509Certificate, hostname: string): boolean {
  if (hostname === "*") return true;
  if (!hostname.startsWith("*.")) return leaf.checkHost(hostname) !== undefined;
  const names = (leaf.subjectAltName ?? "").split(", ");
  return names.some((name) => name.toLowerCase() === `dns:${hostname}`);
}
