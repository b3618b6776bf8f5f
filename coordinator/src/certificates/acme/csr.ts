import { KeyObject, webcrypto } from "node:crypto";
import { Pkcs10CertificateRequestGenerator, SubjectAlternativeNameExtension } from "@forage/identity/x509";

/**
 * Returns a new P-256 key, and a certificate request for the hostname that is signed by the key.
 */
export async function createKeyAndRequest(
  hostname: string,
): Promise<{ readonly keyPem: string; readonly csrPem: string }> {
  const algorithm = { name: "ECDSA", namedCurve: "P-256" } as const;
  const keys = await webcrypto.subtle.generateKey(algorithm, true, ["sign", "verify"]);
  const request = await Pkcs10CertificateRequestGenerator.create({
    // Authorities read the alternative names. Common names are obsolete and limited to 64
    // characters.
    name: "",
    keys,
    signingAlgorithm: { name: "ECDSA", hash: "SHA-256" },
    extensions: [new SubjectAlternativeNameExtension([{ type: "dns", value: hostname }])],
  });
  const keyPem = KeyObject.from(keys.privateKey).export({ type: "pkcs8", format: "pem" }).toString();
  return { keyPem, csrPem: request.toString("pem") };
}
