import { createPrivateKey, X509Certificate } from "node:crypto";
import { splitCertificates } from "@forage/identity/pem";
import { IssueError } from "./issue-error.ts";
import type { NewCertificate } from "./issuer.ts";

/** The most certificates in a chain. Public authorities use few intermediates. */
const MAX_CHAIN = 10;

/**
 * Checks that gateways can serve an issued certificate, and returns it. @throws IssueError if they
 * can't.
 */
export function checkedCertificate(
  hostname: string,
  { chainPem, keyPem }: { readonly chainPem: string; readonly keyPem: string },
  nowMs: number,
): NewCertificate {
  const blocks = splitCertificates(chainPem);
  const [leaf] = blocks.slice(0, MAX_CHAIN).map(read);
  if (leaf === undefined || blocks.length > MAX_CHAIN)
    throw bad(`it sent ${blocks.length} certificates in place of a chain`);
  const names = leaf.subjectAltName?.split(", ") ?? [];
  if (!names.some((name) => name.toLowerCase() === `dns:${hostname.toLowerCase()}`))
    throw bad(`it sent a certificate for ${leaf.subjectAltName ?? "no name"}`);
  if (!leaf.checkPrivateKey(createPrivateKey(keyPem))) throw bad("it sent a certificate for another key");
  const notBeforeMs = leaf.validFromDate.getTime();
  const notAfterMs = leaf.validToDate.getTime();
  if (notAfterMs <= nowMs)
    throw bad(`it sent a certificate that expired at ${leaf.validTo}: is this host's clock right?`);
  return { chainPem: blocks.join(""), keyPem, notBeforeMs, notAfterMs };
}

function read(pem: string): X509Certificate {
  try {
    return new X509Certificate(pem);
  } catch {
    throw bad("it sent a certificate that can't be read");
  }
}

function bad(what: string): IssueError {
  return new IssueError(`the authority's answer is unusable: ${what}`, { blame: "hostname" });
}
