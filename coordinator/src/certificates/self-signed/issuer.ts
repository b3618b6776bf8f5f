import { X509Certificate } from "node:crypto";
import { messageOf } from "@forage/common/message-of";
import { spkiPin } from "@forage/identity/pem";
import { reasonNotIssuable } from "../hostname.ts";
import { IssueError } from "../issue-error.ts";
import type { Issuer } from "../issuer.ts";
import { type AuthorityPem, type MakeOptions, signLeaf } from "./authority.ts";

/**
 * Returns an issuer whose authority can't be read or stored. Existing certificates remain in use,
 * and every attempt fails.
 */
export function brokenIssuer(error: unknown): Issuer {
  const why = `the development CA can't be used: ${messageOf(error)}`;
  return {
    id: "self-signed/unknown",
    name: "the cluster's development CA",
    atOnce: 1,
    refusalOf: reasonNotIssuable,
    issue: () => Promise.reject(new IssueError(why, { blame: "issuer", cause: error })),
  };
}

/** Returns an issuer that signs with an authority that only explicitly configured clients trust. */
export function selfSignedIssuer(authority: AuthorityPem, make: () => MakeOptions): Issuer {
  const root = new X509Certificate(authority.certPem);
  const pin = spkiPin(root);
  return {
    id: `self-signed/${pin}`,
    name: "the cluster's development CA",
    // Each signature takes a few milliseconds of this process.
    atOnce: 4,
    refusalOf: reasonNotIssuable,
    issue: async (hostname) => {
      const options = make();
      if (root.validToDate.getTime() > options.nowMs) return signLeaf(authority, hostname, options);
      throw new IssueError(`the development CA expired at ${root.validTo}`, { blame: "issuer" });
    },
  };
}
