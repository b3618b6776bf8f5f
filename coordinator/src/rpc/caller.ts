import type { NodeId } from "@forage/identity";
import type { Caller as IdentifiedCaller } from "@forage/identity/authorize";

/** The caller, as authenticated by a certificate or a token, and never by a field of a message. */
export type Caller = IdentifiedCaller & {
  /** The problem with the credentials that an anonymous caller sent. */
  readonly problem?: string;
  /** The serial number of the node's certificate. */
  readonly serial?: string;
  /** The node whose expired certificate an anonymous caller has. The certificate may be renewed. */
  readonly expiredNode?: { readonly nodeId: NodeId; readonly serial: string };
  /**
   * The node whose valid certificate is no longer accepted. The node may only prove that the store
   * is out of date.
   */
  readonly refusedNode?: NodeId;
  /** Whether the call of an anonymous caller was passed on by another coordinator. */
  readonly forwarded?: boolean;
  /** The id of another coordinator that makes the call on its own behalf. */
  readonly coordinator?: string;
  /** The id of the caller's API token, if it has one. */
  readonly tokenId?: string;
};

/**
 * Returns the name of the caller in events, logs and limits: the token's id, or the node's name.
 */
export function callerName(caller: Caller): string {
  switch (caller.type) {
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

/** The context of a call in addition to its request. */
export interface CallContext {
  readonly method: string;
  readonly caller: Caller;
  /** The address of the client, `address:port`. */
  readonly peer: string;
  /** Aborts when the client disconnects, the deadline passes or the server stops. */
  readonly signal: AbortSignal;
  /**
   * Records in the audit log that a message of a stream was refused while the stream continues.
   * Default: nothing is recorded.
   */
  readonly messageRefused?: ((why: string) => void) | undefined;
  /**
   * For methods with a stream in each direction: sends a message at once, beside those that the
   * handler yields. Returns false if the message was not accepted, because an earlier one waits for
   * the client or the call is over. Default: the handler has to yield every message.
   */
  readonly sendNow?: ((message: unknown) => boolean) | undefined;
}
