import type { NodeId } from "@forage/identity";
import type { Caller as IdentifiedCaller } from "@forage/identity/authorize";

/** The caller, as proven by a certificate or a token, and never by a message. */
export type Caller = IdentifiedCaller & {
  /** The problem with the credentials that an anonymous caller showed. */
  readonly problem?: string;
  /** The serial number of the certificate that a node made the call with. */
  readonly serial?: string;
  /** The node whose expired certificate an anonymous caller holds. The certificate may be renewed. */
  readonly expiredNode?: { readonly nodeId: NodeId; readonly serial: string };
  /** The node whose certificate is sound and no longer counts. It may prove that the store is out of date, and nothing else. */
  readonly refusedNode?: NodeId;
  /** Whether the call of an anonymous caller comes through the connection of another coordinator. */
  readonly forwarded?: boolean;
  /** The id of another coordinator that makes the call for itself. */
  readonly coordinator?: string;
  /** The id of the API token of a caller that has one. */
  readonly tokenId?: string;
};

/** Names the caller in events, logs and limits: a token by its id, or the node. */
export function callerName(caller: Caller): string {
  switch (caller.kind) {
    case "user":
      return caller.name;
    case "node":
      return `node ${caller.nodeId}`;
    case "anonymous":
      return "";
    default:
      return caller satisfies never;
  }
}

/** The context of a call, besides its request. */
export interface CallContext {
  readonly method: string;
  readonly caller: Caller;
  /** `address:port`. */
  readonly peer: string;
  /** Aborts when the client goes away, its deadline passes or the server stops. */
  readonly signal: AbortSignal;
  /** Records in the audit log that a message of a stream is refused, and the stream goes on. Default: it is not recorded. */
  readonly messageRefused?: ((why: string) => void) | undefined;
}
