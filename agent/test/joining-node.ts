import { nodeId } from "@forage/identity";
import type { CertificateAuthority } from "@forage/identity/ca";
import { type JoinTokenRecord, recordUse, verifyJoinToken } from "@forage/identity/join-token";
import { status } from "@grpc/grpc-js";

export interface JoinRequest {
  readonly tokenId: string;
  readonly tokenSecret: string;
  readonly csr: Buffer;
  readonly nodeName: string;
}

/** Issues the certificate of a node that joins, and records the use of its token. */
export async function joinNode(
  { tokenId, tokenSecret, csr, nodeName }: JoinRequest,
  authority: CertificateAuthority,
  tokens: Map<string, JoinTokenRecord>,
  lifetimeMs?: number,
): Promise<string> {
  const record = tokens.get(tokenId);
  const id = nodeId(nodeName);
  const issued = await authority.issueNode(id, csr, lifetimeMs);
  const attempt = { secret: tokenSecret, nodeName: id, keyPin: issued.pin };
  const verdict = record && verifyJoinToken(record, attempt, Date.now());
  if (record === undefined || !verdict?.ok) {
    throw Object.assign(new Error("the join token is not good"), { code: status.PERMISSION_DENIED });
  }
  if (verdict.type === "first") {
    tokens.set(tokenId, recordUse(record, { keyPin: issued.pin, nodeName: id, atMs: Date.now() }));
  }
  return issued.chainPem;
}
