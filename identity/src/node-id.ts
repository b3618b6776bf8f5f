import { IdentityError } from "./error.ts";

/** Names are short enough for a common name of 64 characters with a `client:` prefix. */
const NAME = /^[a-z0-9](?:[a-z0-9.-]{0,55}[a-z0-9])?$/;

export type NodeId = string & { readonly NodeId: unique symbol };
export type ClientName = string & { readonly ClientName: unique symbol };
export type ClusterName = string & { readonly ClusterName: unique symbol };

/** Checks a node's id: 1–57 lower-case letters, digits, `.` and `-`. @throws IdentityError INVALID_ARGUMENT. */
export function nodeId(text: string): NodeId {
  return checked(text, "node id") as NodeId;
}

/** Checks the name of a machine client by the rule for node ids. */
export function clientName(text: string): ClientName {
  return checked(text, "client name") as ClientName;
}

/** Checks the name of a cluster by the rule for node ids. */
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
