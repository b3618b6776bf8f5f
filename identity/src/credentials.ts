import { createPrivateKey, type X509Certificate } from "node:crypto";
import { createSecureContext } from "node:tls";
import { ChannelCredentials, credentials, Metadata } from "@grpc/grpc-js";
import { IdentityError } from "./error.ts";
import { readCertificate, splitCertificates } from "./pem.ts";

export interface ClientMaterial {
  /** The authorities whose servers are trusted, in PEM. The authorities of the operating system are not trusted. */
  readonly caPem: string;
  /** A client's certificate and key. Set both or neither. */
  readonly certPem?: string;
  readonly keyPem?: string;
}

/**
 * Returns credentials for a channel to the coordinator, with TLS 1.3 and a check of the host name. A channel never
 * changes its certificate; after a renewal, open a new channel and drain the old one. @throws IdentityError
 * PAIR_MISMATCH, CERTIFICATE_INVALID.
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

/** Returns metadata with a bearer token. */
export function bearerMetadata(token: string): Metadata {
  const metadata = new Metadata();
  metadata.set("authorization", `Bearer ${token}`);
  return metadata;
}

/** Returns channel credentials that add a bearer token to each call. The channel must use TLS. */
export function withBearer(channel: ChannelCredentials, token: string): ChannelCredentials {
  const metadata = bearerMetadata(token);
  return channel.compose(
    credentials.createFromMetadataGenerator((_options, done) => done(null, metadata.clone())),
  );
}

/**
 * Returns the chain without self-signed certificates. A server has its own copy of the root, and a root that a client
 * sends costs the server 8 kB for the life of the connection.
 */
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
