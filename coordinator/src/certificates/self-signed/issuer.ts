import { X509Certificate } from "node:crypto";
import { spkiPin } from "@forage/identity/pem";
import { unnameable } from "../hostname.ts";
import { IssueError } from "../issue-error.ts";
import type { Issuer } from "../issuer.ts";
import { type AuthorityPem, type MakeOptions, signLeaf } from "./authority.ts";

/** Signs with an authority that only explicitly configured clients trust. */
export function selfSignedIssuer(authority: AuthorityPem, make: () => MakeOptions): Issuer {
  const root = new X509Certificate(authority.certPem);
  const pin = spkiPin(root);
  return {
    id: `self-signed/${pin}`,
    name: "the cluster's development CA",
    // Each costs a few milliseconds of this process.
    atOnce: 4,
    refusalOf: unnameable,
    issue: async (hostname) => {
      const options = make();
      if (root.validToDate.getTime() > options.nowMs) return signLeaf(authority, hostname, options);
      throw new IssueError(`the development CA has ended at ${root.validTo}`, { blame: "issuer" });
    },
  };
}
