import type { EventInput } from "../model/event.ts";
import type { CertificateState } from "./certificate-state.ts";
import type { IssueError } from "./issue-error.ts";
import type { NewCertificate } from "./issuer.ts";

/**
 * Returns the event for an issued certificate, whether it is the first one of its hostname or a
 * renewal.
 */
export function issuedEvent(
  before: CertificateState,
  { notAfterMs }: NewCertificate,
  issuerName: string,
): EventInput {
  const until = new Date(notAfterMs).toISOString().slice(0, 10);
  const reason = before.certificate === undefined ? "CertificateIssued" : "CertificateRenewed";
  return about(before.hostname, "Normal", reason, `from ${issuerName}, valid until ${until}`);
}

/** Returns the event for a failed attempt. */
export function failureEvent(hostname: string, { message }: IssueError): EventInput {
  return about(hostname, "Warning", "CertificateFailed", message);
}

function about(hostname: string, type: EventInput["type"], reason: string, message: string): EventInput {
  return { namespace: "", kind: "certificate", name: hostname, type, reason, message };
}
