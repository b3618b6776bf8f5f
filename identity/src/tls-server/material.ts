import { constants, createPrivateKey, type X509Certificate } from "node:crypto";
import type { SecureContextOptions } from "node:tls";
import { IdentityError } from "../error.ts";
import { readCertificate, splitCertificates } from "../pem.ts";

/** A server's certificates and key, in PEM. */
export interface TlsMaterial {
  /** The server's certificate followed by its issuers up to the root. Joining agents check the root's pin. */
  readonly chainPem: string;
  readonly keyPem: string;
  /** The authorities whose client certificates are accepted. There are two while one replaces the other. */
  readonly clientCaPem: string;
}

/**
 * Checks the material and converts it to TLS options. @throws IdentityError PAIR_MISMATCH if key and certificate don't
 * match; CERTIFICATE_INVALID if a certificate can't be parsed or there is no authority.
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
    // Sessions are never resumed, because a resumed session would skip the check of a certificate that has since
    // expired or been revoked. Renegotiation is off, because in TLS 1.2 a client could present another certificate
    // later, but its identity is fixed when it connects.
    secureOptions: constants.SSL_OP_NO_TICKET | constants.SSL_OP_NO_RENEGOTIATION,
  };
}

/** Returns the authorities whose client certificates are accepted. */
export function authoritiesOf({ clientCaPem }: TlsMaterial): X509Certificate[] {
  return splitCertificates(clientCaPem).map(readCertificate);
}

function readKey(pem: string): ReturnType<typeof createPrivateKey> {
  try {
    return createPrivateKey(pem);
  } catch {
    // The cause is left out, because parsers quote what they can't read.
    throw new IdentityError("PAIR_MISMATCH", "the server's private key can't be read");
  }
}
