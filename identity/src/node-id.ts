import { IdentityError } from "./error.ts";

/** A name that fits a certificate's common name (64 characters) after its `client:` prefix. */
const NAME = /^[a-z0-9](?:[a-z0-9.-]{0,55}[a-z0-9])?$/;

export type NodeId = string & { readonly NodeId: unique symbol };
export type ClientName = string & { readonly ClientName: unique symbol };
export type ClusterName = string & { readonly ClusterName: unique symbol };

/** Checks a node's id: lower-case letters, digits, `.` and `-`, 1–57 characters. INVALID_ARGUMENT otherwise. */
export function nodeId(text: string): NodeId {
  return checked(text, "node id") as NodeId;
}

/** Checks the name of a machine client, by the same rule as a node's id. */
export function clientName(text: string): ClientName {
  return checked(text, "client name") as ClientName;
}

/** Checks the name of a cluster, by the same rule as a node's id. */
export function clusterName(text: string): ClusterName {
  return checked(text, "cluster name") as ClusterName;
}

export function isName(text: string): boolean {
  return NAME.test(text);
}

function checked(text: string, what: string): string {
  if (!NAME.test(text)) {
    throw new IdentityError(
      "INVALID_ARGUMENT",
      `${what} ${JSON.stringify(text.slice(0, 80))} must be 1 to 57 lower-case letters, digits, dots or dashes`,
    );
  }
  return text;
}
