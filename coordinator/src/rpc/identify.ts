import { bearerToken, parseApiToken, verifyApiToken } from "@forage/identity/api-token";
import type { Peer } from "@forage/identity/tls-server";
import type { Metadata } from "@grpc/grpc-js";
import type { ApiTokenEntry } from "../state/entries.ts";
import type { Caller } from "./caller.ts";
import { forwardedCaller, forwardedPeer } from "./forwarded-caller.ts";

export interface IdentifyOptions {
  readonly findToken: (id: string) => ApiTokenEntry | undefined;
  readonly nowMs: () => number;
  /** Called with the id of each token that was verified. */
  readonly onUse?: (id: string) => void;
}

/** A token in the metadata speaks for the call; else the connection's certificate does. */
export function identify(metadata: Metadata, peer: Peer, options: IdentifyOptions): Caller {
  const header = metadata.get("authorization")[0];
  if (header !== undefined) return identifyToken(String(header), options);
  if (peer.kind === "authenticated") {
    if (peer.identity.kind === "node")
      return { kind: "node", nodeId: peer.identity.nodeId, serial: peer.identity.serial };
    if (peer.identity.kind === "coordinator") return forwardedCaller(metadata, peer.identity.name);
    return {
      kind: "anonymous",
      problem: "certificates of machine clients carry no role: send a bearer token",
    };
  }
  if (peer.certificateProblem === undefined) return { kind: "anonymous" };
  if (peer.certificateProblem === "REVOKED") {
    const refused = peer.revoked?.kind === "node" ? { refusedNode: peer.revoked.nodeId } : {};
    return { kind: "anonymous", problem: REVOKED, ...refused };
  }
  const problem = `the client certificate is not accepted: ${peer.certificateProblem}`;
  if (peer.expired?.kind !== "node") return { kind: "anonymous", problem };
  const { nodeId, serial } = peer.expired;
  return { kind: "anonymous", problem, expiredNode: { nodeId, serial } };
}

/** Returns the address of the client, which is behind another coordinator if that one has passed the call on. */
export function clientAddress(metadata: Metadata, peer: Peer, address: string): string {
  const isForwarded = peer.kind === "authenticated" && peer.identity.kind === "coordinator";
  return (isForwarded ? forwardedPeer(metadata) : undefined) ?? address;
}

const REVOKED =
  "the client certificate is not accepted: its node was removed or has joined again since; to join again put what `forage token create --node NODE` prints into the agent's token file";

function identifyToken(header: string, { findToken, nowMs, onUse }: IdentifyOptions): Caller {
  const parsed = parseApiToken(bearerToken(header) ?? "");
  if (parsed === undefined) {
    return {
      kind: "anonymous",
      problem: "the authorization metadata holds no token of the form `Bearer flt_…`",
    };
  }
  // One answer for unknown ids and wrong secrets, so that ids can't be probed.
  const unknown: Caller = { kind: "anonymous", problem: "the token is unknown or was revoked" };
  const entry = findToken(parsed.id);
  if (entry === undefined) return unknown;
  const verdict = verifyApiToken(entry.record, parsed.secret, nowMs());
  if (verdict.ok) {
    onUse?.(parsed.id);
    return { kind: "user", name: `token:${parsed.id}`, grants: entry.record.grants, tokenId: parsed.id };
  }
  return verdict.reason === "EXPIRED" ? { kind: "anonymous", problem: "the token has expired" } : unknown;
}
