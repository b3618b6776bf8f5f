import { bearerToken, parseApiToken, verifyApiToken } from "@forage/identity/api-token";
import type { Peer } from "@forage/identity/tls-server";
import type { Metadata } from "@grpc/grpc-js";
import type { ApiTokenEntry } from "../state/entries.ts";
import type { Caller } from "./caller.ts";
import { forwardedCaller, forwardedPeer } from "./forwarded-caller.ts";

export interface IdentifyOptions {
  readonly findToken: (id: string) => ApiTokenEntry | undefined;
  readonly nowMs: () => number;
  /** Called with the id of each verified token. */
  readonly onUse?: (id: string) => void;
}

/**
 * Identifies the caller by the token in the metadata, or by the connection's certificate if there
 * is no token.
 */
export function identify(metadata: Metadata, peer: Peer, options: IdentifyOptions): Caller {
  const header = metadata.get("authorization")[0];
  if (header !== undefined) return identifyToken(String(header), options);
  if (peer.type === "authenticated") {
    if (peer.identity.type === "node")
      return { type: "node", nodeId: peer.identity.nodeId, serial: peer.identity.serial };
    if (peer.identity.type === "coordinator") return forwardedCaller(metadata, peer.identity.name);
    return {
      type: "anonymous",
      problem: "certificates of machine clients carry no role: send a bearer token",
    };
  }
  if (peer.certificateProblem === undefined) return { type: "anonymous" };
  if (peer.certificateProblem === "REVOKED") {
    const refused = peer.revoked?.type === "node" ? { refusedNode: peer.revoked.nodeId } : {};
    return { type: "anonymous", problem: REVOKED, ...refused };
  }
  const problem = `the client certificate is not accepted: ${peer.certificateProblem}`;
  if (peer.expired?.type !== "node") return { type: "anonymous", problem };
  const { nodeId, serial } = peer.expired;
  return { type: "anonymous", problem, expiredNode: { nodeId, serial } };
}

/**
 * Returns the address of the client. If another coordinator passed the call on, this is the address
 * that it sent.
 */
export function clientAddress(metadata: Metadata, peer: Peer, address: string): string {
  const isForwarded = peer.type === "authenticated" && peer.identity.type === "coordinator";
  return (isForwarded ? forwardedPeer(metadata) : undefined) ?? address;
}

const REVOKED =
  "the client certificate is not accepted: its node was removed or has joined again since; to join again put what `forage token create --node NODE` prints into the agent's token file";

function identifyToken(header: string, { findToken, nowMs, onUse }: IdentifyOptions): Caller {
  const parsed = parseApiToken(bearerToken(header) ?? "");
  if (parsed === undefined) {
    return {
      type: "anonymous",
      problem: "the authorization metadata holds no token of the form `Bearer flt_…`",
    };
  }
  // Unknown ids and wrong secrets get the same answer, so that ids can't be probed.
  const unknown: Caller = { type: "anonymous", problem: "the token is unknown or was revoked" };
  const entry = findToken(parsed.id);
  if (entry === undefined) return unknown;
  const verdict = verifyApiToken(entry.record, parsed.secret, nowMs());
  if (verdict.ok) {
    onUse?.(parsed.id);
    return { type: "user", name: `token:${parsed.id}`, grants: entry.record.grants, tokenId: parsed.id };
  }
  return verdict.reason === "EXPIRED" ? { type: "anonymous", problem: "the token has expired" } : unknown;
}
