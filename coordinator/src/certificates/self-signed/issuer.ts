import { X509Certificate } from "node:crypto";
import { spkiPin } from "@forage/identity/pem";
import { unnameable } from "../hostname.ts";
import type { Issuer } from "../issuer.ts";
import { type AuthorityPem, type MakeOptions, signLeaf } from "./authority.ts";

/** Signs with an authority that nobody knows but those who were told to trust it. */
export function selfSignedIssuer(authority: AuthorityPem, make: () => MakeOptions): Issuer {
  const pin = spkiPin(new X509Certificate(authority.certPem));
  return {
    id: `self-signed/${pin}`,
    name: "the cluster's development CA",
    // Each costs a few milliseconds of this process.
    atOnce: 4,
    refusalOf: unnameable,
    issue: (hostname) => signLeaf(authority, hostname, make()),
  };
}
