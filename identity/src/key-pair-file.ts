import { createPrivateKey } from "node:crypto";
import { IdentityError } from "./error.ts";
import { identityOf, normalSerial, type PeerIdentity } from "./peer-identity.ts";
import { findPrivateKey, readCertificate, spkiPin, splitCertificates } from "./pem.ts";
import { readPrivateFile, writePrivateFile } from "./private-file.ts";

/** A certificate with its chain, and the key that belongs to it. */
export interface KeyPair {
  readonly chainPem: string;
  readonly keyPem: string;
}

/** A checked pair with fields of its certificate. */
export type CheckedKeyPair = KeyPair & {
  readonly serial: string;
  readonly notBeforeMs: number;
  readonly notAfterMs: number;
  /** Pin of the key. */
  readonly pin: string;
  /** Set for a node's or a client's certificate. */
  readonly identity: PeerIdentity | undefined;
};

/**
 * Checks that key and certificate match; with `caPem`, also that one of these authorities issued the certificate. An
 * agent checks what a coordinator sends before it deletes its old certificate. @throws IdentityError PAIR_MISMATCH,
 * CERTIFICATE_INVALID.
 */
export function checkKeyPair(pair: KeyPair, caPem?: string): CheckedKeyPair {
  const certificate = readCertificate(splitCertificates(pair.chainPem)[0] ?? "");
  if (!certificate.checkPrivateKey(readKey(pair.keyPem))) {
    throw new IdentityError("PAIR_MISMATCH", "the key doesn't belong to the certificate");
  }
  if (caPem !== undefined) {
    const authorities = splitCertificates(caPem).map(readCertificate);
    const issued = authorities.some(
      (ca) => ca.ca && certificate.checkIssued(ca) && certificate.verify(ca.publicKey),
    );
    if (!issued)
      throw new IdentityError(
        "CERTIFICATE_INVALID",
        "the certificate comes from an authority that is not trusted",
      );
  }
  return {
    ...pair,
    serial: normalSerial(certificate.serialNumber),
    notBeforeMs: certificate.validFromDate.getTime(),
    notAfterMs: certificate.validToDate.getTime(),
    pin: spkiPin(certificate),
    identity: identityOf(certificate.toLegacyObject()),
  };
}

/**
 * Checks a pair and writes it, key first, into one file of mode 0600. With two files, a reader could get halves that
 * don't match. With `replace: false`, fails with EEXIST if the file exists.
 */
export async function writeKeyPair(
  path: string,
  pair: KeyPair,
  options: { readonly replace?: boolean } = {},
): Promise<CheckedKeyPair> {
  const checked = checkKeyPair(pair);
  await writePrivateFile(path, pair.keyPem + pair.chainPem, options);
  return checked;
}

/**
 * Reads a file that `writeKeyPair` has written. @throws IdentityError FILE_MISSING, FILE_UNSAFE, CERTIFICATE_INVALID,
 * PAIR_MISMATCH.
 */
export async function readKeyPair(path: string): Promise<CheckedKeyPair> {
  const text = await readPrivateFile(path);
  return checkKeyPair({ keyPem: findPrivateKey(text) ?? "", chainPem: splitCertificates(text).join("") });
}

function readKey(pem: string): ReturnType<typeof createPrivateKey> {
  try {
    return createPrivateKey(pem);
  } catch {
    // The cause is left out, because parsers quote what they can't read.
    throw new IdentityError("PAIR_MISMATCH", "the private key can't be read");
  }
}
