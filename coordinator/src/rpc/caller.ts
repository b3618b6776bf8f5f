import type { NodeId } from "@forage/identity";
import type { Caller as IdentifiedCaller } from "@forage/identity/authorize";

/** The caller, as proven by a certificate or a token, and never by a message. */
export type Caller = IdentifiedCaller & {
  /** For an anonymous caller that showed something: what was wrong with it. */
  readonly problem?: string;
  /** For a node: serial number of the certificate that the call was made with. */
  readonly serial?: string;
  /** For an anonymous caller: the node whose certificate it holds, which has expired and may be renewed. */
  readonly expiredNode?: { readonly nodeId: NodeId; readonly serial: string };
  /** For a caller with an API token: its id. */
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
}
