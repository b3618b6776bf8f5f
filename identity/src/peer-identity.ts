import type { PeerCertificate } from "node:tls";
import type { ClientName, ClusterName, NodeId } from "./node-id.ts";
import { isName } from "./node-id.ts";

/** The node, client or coordinator that a verified certificate identifies. */
export type PeerIdentity = NodeIdentity | ClientIdentity | CoordinatorIdentity;

export type NodeIdentity = IdentityFields & { readonly type: "node"; readonly nodeId: NodeId };
export type ClientIdentity = IdentityFields & { readonly type: "client"; readonly name: ClientName };
/** A standby coordinator of the cluster, which forwards calls to the leader. */
export type CoordinatorIdentity = IdentityFields & { readonly type: "coordinator"; readonly name: string };

interface IdentityFields {
  readonly cluster: ClusterName;
  /** The serial number in lower-case hex without leading zeros, as in `IssuedCertificate.serial`. */
  readonly serial: string;
  /** Milliseconds since the epoch. */
  readonly notBeforeMs: number;
  /** Milliseconds since the epoch. TLS checks it once, when the connection opens. */
  readonly notAfterMs: number;
}

const IDENTITY_URI = /^URI:spiffe:\/\/([^/,"\s]+)\/(node|client|coordinator)\/([^/,"\s]+)$/;

/**
 * Reads the identity from the result of `getPeerCertificate()`. The caller must have verified the certificate's chain.
 * Returns `undefined` unless there is exactly one alternative name, a URI, that agrees with the common name.
 */
export function identityOf(certificate: PeerCertificate): PeerIdentity | undefined {
  const [, cluster, kind, name] = IDENTITY_URI.exec(certificate.subjectaltname ?? "") ?? [];
  if (cluster === undefined || name === undefined || !isName(cluster) || !isName(name)) return undefined;
  if (certificate.subject?.CN !== `${kind}:${name}`) return undefined;
  const notAfterMs = Date.parse(certificate.valid_to);
  const notBeforeMs = Date.parse(certificate.valid_from);
  if (Number.isNaN(notAfterMs) || Number.isNaN(notBeforeMs)) return undefined;
  const fields = {
    cluster: cluster as ClusterName,
    serial: normalSerial(certificate.serialNumber),
    notBeforeMs,
    notAfterMs,
  };
  if (kind === "node") return { type: kind, nodeId: name as NodeId, ...fields };
  if (kind === "coordinator") return { type: kind, name, ...fields };
  return { type: "client", name: name as ClientName, ...fields };
}

/** Returns a serial number in the form for comparisons. Tools differ in case and leading zeros. */
export function normalSerial(serial: string): string {
  return serial
    .toLowerCase()
    .replace(/[^0-9a-f]/g, "")
    .replace(/^0+(?=.)/, "");
}
