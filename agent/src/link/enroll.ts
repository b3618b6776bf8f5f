import { readFile } from "node:fs/promises";
import { linkSignals } from "@forage/common/link-signals";
import { messageOf } from "@forage/common/message-of";
import { IdentityError } from "@forage/identity";
import { createKeyAndCsr } from "@forage/identity/csr";
import { type JoinToken, parseJoinToken } from "@forage/identity/join-token";
import { probeServer } from "@forage/identity/probe-server";
import type { JoinRequest, JoinResponse } from "@forage/proto/forage/agent/v1/agent";
import { openEnrollmentClient, toLinkError } from "./client.ts";
import type { CoordinatorAddress } from "./coordinator-address.ts";
import { LinkError } from "./link-error.ts";
import type { IdentityFiles, NodeIdentity, PendingKey } from "./node-identity.ts";

export interface EnrollOptions {
  /** The coordinator to connect to next. */
  readonly address: CoordinatorAddress;
  readonly nodeName: string;
  /** The path of the file with the join token. Undefined: none is configured. */
  readonly tokenFile: string | undefined;
  readonly files: IdentityFiles;
  /** Rejects if the host can't belong to the cluster with this authority. */
  readonly mayJoin?: ((authority: string) => Promise<void>) | undefined;
}

const JOIN_TIMEOUT_MS = 15_000;

/** Returns the token that has not been used yet, or undefined if there is none. */
export async function freshToken({ tokenFile, files }: EnrollOptions): Promise<JoinToken | undefined> {
  if (tokenFile === undefined) return undefined;
  let text: string;
  try {
    text = await readFile(tokenFile, "utf8");
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
    throw new LinkError("NO_IDENTITY", `the join token file can't be read: ${tokenFile}`, { cause: error });
  }
  const token = parseJoinToken(text);
  return token.id === (await files.usedToken()) ? undefined : token;
}

/**
 * Exchanges a token for a certificate. First fetches the coordinator's root and compares it with the token's pin; the
 * secret is sent only over a connection that this root authenticates. Errors with code REFUSED or PROTOCOL persist
 * until an operator acts.
 */
export async function enroll(
  options: EnrollOptions,
  token: JoinToken,
  signal: AbortSignal,
): Promise<NodeIdentity> {
  const { address, files, nodeName } = options;
  await assertMayJoin(options, token);
  const { rootPem } = await probe(address, token, signal);
  const key = await pendingKey(files, token.id);
  const response = await join(address, rootPem, signal, {
    tokenId: token.id,
    tokenSecret: token.secret,
    csr: derOf(key.csrPem),
    nodeName,
  });
  const identity = await files.save(key.keyPem, response.certificatePem, response.caBundlePem);
  await files.saveUsedToken(token.id);
  await files.clearPending();
  return identity;
}

/** Converts a PKCS #10 request from PEM to DER. */
export function derOf(csrPem: string): Buffer {
  return Buffer.from(csrPem.replace(/-----[^-]+-----/g, ""), "base64");
}

async function assertMayJoin({ mayJoin }: EnrollOptions, { pin }: JoinToken): Promise<void> {
  try {
    await mayJoin?.(pin);
  } catch (cause) {
    throw new LinkError("REFUSED", messageOf(cause), { cause });
  }
}

async function probe(address: CoordinatorAddress, token: JoinToken, signal: AbortSignal) {
  try {
    return await probeServer(address.host, address.port, [token.pin], signal);
  } catch (error) {
    if (!(error instanceof IdentityError)) throw error;
    const code = error.retryable || error.code === "ABORTED" ? "UNAVAILABLE" : "REFUSED";
    throw new LinkError(code, error.message, { cause: error });
  }
}

// Uses the same key for the same token, so that the coordinator issues its certificate again if the first response was
// lost.
async function pendingKey(files: IdentityFiles, tokenId: string): Promise<PendingKey> {
  const known = await files.loadPending();
  if (known?.tokenId === tokenId) return known;
  const made = { tokenId, ...(await createKeyAndCsr()) };
  await files.savePending(made);
  return made;
}

function join(
  address: CoordinatorAddress,
  rootPem: string,
  signal: AbortSignal,
  request: JoinRequest,
): Promise<JoinResponse> {
  const client = openEnrollmentClient(address, rootPem);
  const { promise, resolve, reject } = Promise.withResolvers<JoinResponse>();
  const call = client.join(request, (error, response) => {
    if (error !== null) reject(toLinkError(error));
    else resolve(response);
  });
  const cancel = () => call.cancel();
  const { signal: giveUp, unlink } = linkSignals(signal, AbortSignal.timeout(JOIN_TIMEOUT_MS));
  giveUp.addEventListener("abort", cancel, { once: true });
  return promise.finally(() => {
    giveUp.removeEventListener("abort", cancel);
    unlink();
    client.close();
  });
}
