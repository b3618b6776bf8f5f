import { createPrivateKey, type X509Certificate } from "node:crypto";
import { createSecureContext } from "node:tls";
import { ChannelCredentials, credentials, Metadata } from "@grpc/grpc-js";
import { IdentityError } from "./error.ts";
import { readCertificate, splitCertificates } from "./pem.ts";

export interface ClientMaterial {
  /** The authorities whose servers are trusted. The system's own authorities are not. */
  readonly caPem: string;
  /** A client's certificate and key, both or neither. */
  readonly certPem?: string;
  readonly keyPem?: string;
}

/**
 * Credentials for a channel to the coordinator: TLS 1.3, the host name checked. A channel keeps the certificate it was made
 * with; after a renewal make a new channel and drain the old one. PAIR_MISMATCH, CERTIFICATE_INVALID.
 */
export function channelCredentials(material: ClientMaterial): ChannelCredentials {
  const authorities = splitCertificates(material.caPem);
  if (authorities.length === 0)
    throw new IdentityError("CERTIFICATE_INVALID", "there is no authority to trust");
  const context = createSecureContext({
    ca: [...authorities],
    minVersion: "TLSv1.3",
    ...clientPair(material),
  });
  return ChannelCredentials.createFromSecureContext(context);
}

/** Metadata with a bearer token, for a call or to copy from. */
export function bearerMetadata(token: string): Metadata {
  const metadata = new Metadata();
  metadata.set("authorization", `Bearer ${token}`);
  return metadata;
}

/** Channel credentials that send a bearer token with each call; only ever over TLS. */
export function withBearer(channel: ChannelCredentials, token: string): ChannelCredentials {
  const metadata = bearerMetadata(token);
  return channel.compose(
    credentials.createFromMetadataGenerator((_options, done) => done(null, metadata.clone())),
  );
}

/** A server has its own copy of the root. One that a client sends costs the server 8 kB for as long as the connection lasts. */
function withoutRoots(chainPem: string): string {
  const [leaf = "", ...others] = splitCertificates(chainPem);
  return [leaf, ...others.filter((pem) => !isSelfIssued(readCertificate(pem)))].join("");
}

function isSelfIssued({ subject, issuer }: X509Certificate): boolean {
  return subject === issuer;
}

function clientPair(material: ClientMaterial): { cert: string; key: string } | undefined {
  const { certPem, keyPem } = material;
  if (certPem === undefined && keyPem === undefined) return undefined;
  if (certPem === undefined || keyPem === undefined) {
    throw new IdentityError(
      "INVALID_ARGUMENT",
      "a client certificate needs its key, and a key its certificate",
    );
  }
  if (!readCertificate(certPem).checkPrivateKey(createPrivateKey(keyPem))) {
    throw new IdentityError("PAIR_MISMATCH", "the client's key doesn't belong to its certificate");
  }
  return { cert: withoutRoots(certPem), key: keyPem };
}
