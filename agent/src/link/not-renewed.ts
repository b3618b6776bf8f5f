import { LinkError } from "./link-error.ts";
import type { NodeIdentity } from "./node-identity.ts";

/** Returns the error of a node whose certificate is unusable and not renewed by the coordinator. */
export function notRenewed({ pair }: NodeIdentity, nowMs: number, cause: LinkError, how: string): LinkError {
  const asked = `the coordinator doesn't renew it (${cause.message}); its pods keep running; to join again ${how}`;
  if (nowMs >= pair.notAfterMs) {
    const ended = new Date(pair.notAfterMs).toISOString();
    return new LinkError("CERTIFICATE_EXPIRED", `the node's certificate expired ${ended} and ${asked}`, {
      cause,
    });
  }
  const begins = new Date(pair.notBeforeMs).toISOString();
  const now = new Date(nowMs).toISOString();
  return new LinkError(
    "CERTIFICATE_NOT_YET_VALID",
    `the node's certificate is valid from ${begins}, and this host's clock says ${now}: compare the clocks of this host and of the coordinator, ` +
      `one of which is or was wrong; the node connects by itself once the certificate is valid; ${asked}`,
    { cause },
  );
}
