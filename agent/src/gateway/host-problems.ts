import { createPrivateKey, X509Certificate } from "node:crypto";
import type { GatewayCertificate, GatewayHost } from "@forage/proto/forage/agent/v1/agent";

const HOSTNAME = /^(\*|(\*\.)?[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*)$/;
const HOSTNAME_LENGTH_MAX = 253;

/** Returns the reason why this host can't be served at all, or undefined if there is none. */
export function problemOfHost({ hostname }: GatewayHost): string | undefined {
  return hostname.length <= HOSTNAME_LENGTH_MAX && HOSTNAME.test(hostname)
    ? undefined
    : "it is not a host name in lower case";
}

/** Returns the reason why the certificate can't be served. Undefined if no fault is known. Reveals nothing about the key. */
export function problemOfCertificate({ chainPem, keyPem }: GatewayCertificate): string | undefined {
  let certificate: X509Certificate;
  try {
    certificate = new X509Certificate(chainPem);
  } catch {
    return "its chain is not a certificate in PEM";
  }
  try {
    return certificate.checkPrivateKey(createPrivateKey(keyPem))
      ? undefined
      : "its key belongs to another certificate";
  } catch {
    return "its key is not a private key in PEM";
  }
}
