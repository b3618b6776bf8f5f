import { generateKeyPair, sign } from "node:crypto";
import { promisify } from "node:util";

/** A new P-256 key and a signing request for it. */
export interface KeyAndCsr {
  /** The key as PKCS #8 PEM. It must never be sent or logged. */
  readonly keyPem: string;
  /** The request as PKCS #10 PEM. Its subject is a placeholder, because the authority uses only the public key. */
  readonly csrPem: string;
}

/** The DER tags (X.690) of a request's elements. */
const TAG = {
  integer: 0x02,
  bitString: 0x03,
  oid: 0x06,
  utf8: 0x0c,
  sequence: 0x30,
  set: 0x31,
  attributes: 0xa0,
};
const COMMON_NAME = Buffer.from([0x55, 0x04, 0x03]);
const ECDSA_WITH_SHA256 = Buffer.from([0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02]);

/**
 * Makes a key and a signing request (RFC 2986). The encoding is written by hand because an X.509 library would cost
 * every agent 10 MB of memory. Only the coordinator, which parses requests of others, loads one.
 */
export async function createKeyAndCsr(): Promise<KeyAndCsr> {
  const { publicKey, privateKey } = await promisify(generateKeyPair)("ec", { namedCurve: "P-256" });
  const subject = sequence(
    der(TAG.set, sequence(der(TAG.oid, COMMON_NAME), der(TAG.utf8, Buffer.from("forage")))),
  );
  const version = der(TAG.integer, Buffer.from([0]));
  const spki = publicKey.export({ type: "spki", format: "der" });
  const info = sequence(version, subject, spki, der(TAG.attributes));
  // A bit string starts with the number of its unused bits.
  const signature = der(TAG.bitString, Buffer.from([0]), sign("sha256", info, privateKey));
  const request = sequence(info, sequence(der(TAG.oid, ECDSA_WITH_SHA256)), signature);
  return {
    keyPem: privateKey.export({ type: "pkcs8", format: "pem" }).toString(),
    csrPem: toPem("CERTIFICATE REQUEST", request),
  };
}

function sequence(...parts: readonly Buffer[]): Buffer {
  return der(TAG.sequence, ...parts);
}

/** Encodes an element as tag, length and value. Supports lengths up to 65,535, far more than a request needs. */
export function der(tag: number, ...parts: readonly Buffer[]): Buffer {
  const value = Buffer.concat(parts);
  const { length } = value;
  const head =
    length < 0x80
      ? [tag, length]
      : length < 0x100
        ? [tag, 0x81, length]
        : [tag, 0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.from(head), value]);
}

function toPem(label: string, bytes: Buffer): string {
  const lines = bytes.toString("base64").match(/.{1,64}/g) ?? [];
  return [`-----BEGIN ${label}-----`, ...lines, `-----END ${label}-----`, ""].join("\n");
}
