import { constants, createPrivateKey, type X509Certificate } from "node:crypto";
import type { SecureContextOptions } from "node:tls";
import { IdentityError } from "../error.ts";
import { readCertificate, splitCertificates } from "../pem.ts";

/** A server's certificates and key. All PEM. */
export interface TlsMaterial {
  /** The server's certificate first, then up to and including its root: joining agents check the root's pin. */
  readonly chainPem: string;
  readonly keyPem: string;
  /** The authorities whose client certificates are accepted; two while they are rolled. */
  readonly clientCaPem: string;
}

/**
 * Checks the material and makes TLS options of it. PAIR_MISMATCH when key and certificate differ, CERTIFICATE_INVALID when
 * a certificate can't be read or there is no authority.
 */
export function secureContextOptions(material: TlsMaterial): SecureContextOptions {
  const [leaf] = splitCertificates(material.chainPem);
  const authorities = splitCertificates(material.clientCaPem);
  if (leaf === undefined) throw new IdentityError("CERTIFICATE_INVALID", "there is no server certificate");
  if (authorities.length === 0)
    throw new IdentityError("CERTIFICATE_INVALID", "there is no client authority");
  for (const pem of authorities) readCertificate(pem);
  if (!readCertificate(leaf).checkPrivateKey(readKey(material.keyPem))) {
    throw new IdentityError("PAIR_MISMATCH", "the server's key doesn't belong to its certificate");
  }
  return {
    cert: material.chainPem,
    key: material.keyPem,
    ca: [...authorities],
    minVersion: "TLSv1.2",
    // A resumed session would carry over the verdict on a certificate that has expired or been revoked since.
    // In TLS 1.2 a client could show another certificate later; who it is was settled when it connected.
    secureOptions: constants.SSL_OP_NO_TICKET | constants.SSL_OP_NO_RENEGOTIATION,
  };
}

/** The authorities whose client certificates are accepted. */
export function authoritiesOf({ clientCaPem }: TlsMaterial): X509Certificate[] {
  return splitCertificates(clientCaPem).map(readCertificate);
}

function readKey(pem: string): ReturnType<typeof createPrivateKey> {
  try {
    return createPrivateKey(pem);
  } catch {
    // The cause is left out: parsers like to quote what they couldn't read.
    throw new IdentityError("PAIR_MISMATCH", "the server's private key can't be read");
  }
}
