import { linkSignals } from "@forage/common/link-signals";
import { createKeyAndCsr } from "@forage/identity/csr";
import type { AgentServiceClient, RenewResponse } from "@forage/proto/forage/agent/v1/agent";
import { toLinkError } from "./client.ts";
import { derOf } from "./enroll.ts";
import type { IdentityFiles, NodeIdentity, RenewalKey } from "./node-identity.ts";

const RENEW_TIMEOUT_MS = 15_000;

/**
 * Requests a certificate for a new key over the connection that the current certificate authenticates. The key is
 * written to disk before the request and reused by a later attempt: if the key can't be written, the certificate
 * couldn't be either.
 */
export async function renewIdentity(
  client: AgentServiceClient,
  files: IdentityFiles,
  signal: AbortSignal,
): Promise<NodeIdentity> {
  const { keyPem, csrPem } = await renewalKey(files);
  const { promise, resolve, reject } = Promise.withResolvers<RenewResponse>();
  const call = client.renew({ csr: derOf(csrPem) }, (error, response) => {
    if (error !== null) reject(toLinkError(error));
    else resolve(response);
  });
  const cancel = () => call.cancel();
  const { signal: giveUp, unlink } = linkSignals(signal, AbortSignal.timeout(RENEW_TIMEOUT_MS));
  giveUp.addEventListener("abort", cancel, { once: true });
  try {
    const { certificatePem, caBundlePem } = await promise;
    const identity = await files.save(keyPem, certificatePem, caBundlePem);
    await files.clearRenewal();
    return identity;
  } finally {
    giveUp.removeEventListener("abort", cancel);
    unlink();
  }
}

async function renewalKey(files: IdentityFiles): Promise<RenewalKey> {
  const known = await files.loadRenewal();
  if (known !== undefined) return known;
  const made = await createKeyAndCsr();
  await files.saveRenewal(made);
  return made;
}
