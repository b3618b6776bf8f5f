import { createPublicKey } from "node:crypto";
import { messageOf } from "@forage/common/message-of";
import { IdentityError } from "./error.ts";
import { Pkcs10CertificateRequest } from "./x509.ts";

/** A request of an agent has 200 bytes of DER. A much longer one is not parsed. */
const MAX_CSR_BYTES = 8 * 1024;

/**
 * Checks that the request is signed with the key that it contains, and returns that key as SPKI DER. Ignores subject,
 * alternative names and extensions. @throws IdentityError CSR_INVALID if the request can't be parsed, was altered or
 * isn't P-256.
 */
export async function publicKeyOfCsr(csr: string | Uint8Array): Promise<Uint8Array> {
  if (csr.length > MAX_CSR_BYTES) throw new IdentityError("CSR_INVALID", "the signing request is too long");
  try {
    const request = new Pkcs10CertificateRequest(typeof csr === "string" ? csr : Uint8Array.from(csr));
    const spki = new Uint8Array(request.publicKey.rawData);
    const key = createPublicKey({ key: Buffer.from(spki), type: "spki", format: "der" });
    if (key.asymmetricKeyDetails?.namedCurve !== "prime256v1") throw new Error("its key isn't P-256");
    if (!(await request.verify())) throw new Error("its signature doesn't match its key");
    return spki;
  } catch (cause) {
    const reason = messageOf(cause);
    throw new IdentityError("CSR_INVALID", `the signing request was refused: ${reason}`, { cause });
  }
}
