import { createKeyAndCsr } from "@forage/identity/csr";
import type { AgentServiceClient, RenewResponse } from "@forage/proto/forage/agent/v1/agent";
import { toLinkError } from "./client.ts";
import { derOf } from "./enroll.ts";
import type { IdentityFiles, NodeIdentity } from "./node-identity.ts";

const RENEW_TIMEOUT_MS = 15_000;

/** A new certificate for a new key, asked for over the connection that the present one vouches for. */
export async function renewIdentity(
  client: AgentServiceClient,
  files: IdentityFiles,
  signal: AbortSignal,
): Promise<NodeIdentity> {
  const { keyPem, csrPem } = await createKeyAndCsr();
  const { promise, resolve, reject } = Promise.withResolvers<RenewResponse>();
  const call = client.renew({ csr: derOf(csrPem) }, (error, response) => {
    if (error !== null) reject(toLinkError(error));
    else resolve(response);
  });
  const cancel = () => call.cancel();
  const giveUp = AbortSignal.any([signal, AbortSignal.timeout(RENEW_TIMEOUT_MS)]);
  giveUp.addEventListener("abort", cancel, { once: true });
  try {
    const { certificatePem, caBundlePem } = await promise;
    return await files.save(keyPem, certificatePem, caBundlePem);
  } finally {
    giveUp.removeEventListener("abort", cancel);
  }
}
