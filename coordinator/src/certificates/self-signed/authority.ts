import { KeyObject, webcrypto } from "node:crypto";
import {
  AuthorityKeyIdentifierExtension,
  BasicConstraintsExtension,
  ExtendedKeyUsage,
  ExtendedKeyUsageExtension,
  KeyUsageFlags,
  KeyUsagesExtension,
  SubjectAlternativeNameExtension,
  SubjectKeyIdentifierExtension,
  X509Certificate,
  X509CertificateGenerator,
} from "@forage/identity/x509";
import type { NewCertificate } from "../issuer.ts";

const KEY_ALGORITHM = { name: "ECDSA", namedCurve: "P-256" } as const;
const SIGNING_ALGORITHM = { name: "ECDSA", hash: "SHA-256" } as const;
const DAY_MS = 24 * 3_600_000;
/** Ten years, because users add the authority to trust stores by hand. */
const AUTHORITY_LIFETIME_MS = 3650 * DAY_MS;
const LEAF_LIFETIME_MS = 90 * DAY_MS;
/** The validity begins in the past, because clocks of clients may be slow. */
const BACKDATE_MS = 5 * 60_000;

export interface AuthorityPem {
  readonly certPem: string;
  readonly keyPem: string;
}

export interface MakeOptions {
  readonly nowMs: number;
  readonly randomBytes: (count: number) => Uint8Array;
}

/**
 * Creates a development authority: P-256, valid for ten years, for servers only. It is separate
 * from the cluster's own authority, which only members of the cluster should trust.
 */
export async function createAuthority(cluster: string, options: MakeOptions): Promise<AuthorityPem> {
  const keys = await webcrypto.subtle.generateKey(KEY_ALGORITHM, true, ["sign", "verify"]);
  const serialNumber = serialOf(options);
  const certificate = await X509CertificateGenerator.createSelfSigned({
    serialNumber,
    name: [
      { O: ["Forage"] },
      { CN: [`Forage development CA of ${commonNamePart(cluster)} ${serialNumber.slice(0, 8)}`] },
    ],
    notBefore: new Date(options.nowMs - BACKDATE_MS),
    notAfter: new Date(options.nowMs + AUTHORITY_LIFETIME_MS),
    keys,
    signingAlgorithm: SIGNING_ALGORITHM,
    extensions: [
      new BasicConstraintsExtension(true, 0, true),
      new KeyUsagesExtension(KeyUsageFlags.keyCertSign | KeyUsageFlags.cRLSign, true),
      // Verifiers apply this restriction to everything that the authority signs.
      new ExtendedKeyUsageExtension([ExtendedKeyUsage.serverAuth], false),
      await SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  });
  return { certPem: pemOf(certificate), keyPem: exportKey(keys.privateKey) };
}

/**
 * Issues a server certificate for the hostname with its own key: P-256, valid for 90 days, but not
 * longer than its authority.
 */
export async function signLeaf(
  authority: AuthorityPem,
  hostname: string,
  options: MakeOptions,
): Promise<NewCertificate> {
  const root = new X509Certificate(authority.certPem);
  const signingKey = await importKey(authority.keyPem);
  const keys = await webcrypto.subtle.generateKey(KEY_ALGORITHM, true, ["sign", "verify"]);
  const notBeforeMs = options.nowMs - BACKDATE_MS;
  const notAfterMs = Math.min(options.nowMs + LEAF_LIFETIME_MS, root.notAfter.getTime());
  const certificate = await X509CertificateGenerator.create({
    serialNumber: serialOf(options),
    subject: [{ CN: [commonNamePart(hostname)] }],
    issuer: root.subjectName,
    notBefore: new Date(notBeforeMs),
    notAfter: new Date(notAfterMs),
    publicKey: keys.publicKey,
    signingKey,
    signingAlgorithm: SIGNING_ALGORITHM,
    extensions: [
      new BasicConstraintsExtension(false, undefined, true),
      new KeyUsagesExtension(KeyUsageFlags.digitalSignature, true),
      new ExtendedKeyUsageExtension([ExtendedKeyUsage.serverAuth], false),
      new SubjectAlternativeNameExtension([{ type: "dns", value: hostname }]),
      await SubjectKeyIdentifierExtension.create(keys.publicKey),
      await AuthorityKeyIdentifierExtension.create(root.publicKey),
    ],
  });
  const chainPem = pemOf(certificate) + authority.certPem;
  return { chainPem, keyPem: exportKey(keys.privateKey), notBeforeMs, notAfterMs };
}

/**
 * Shortens a text to fit into a common name of 64 characters (X.520). Clients use the alternative
 * names instead.
 */
function commonNamePart(text: string): string {
  return text.length <= 32 ? text : `${text.slice(0, 31)}…`;
}

/** Returns a serial number of 126 random bits that is positive and has 32 digits. */
function serialOf({ randomBytes }: MakeOptions): string {
  const bytes = Buffer.from(randomBytes(16));
  bytes.writeUInt8((bytes.readUInt8(0) & 0x3f) | 0x40, 0);
  return bytes.toString("hex");
}

function importKey(keyPem: string): Promise<webcrypto.CryptoKey> {
  const body = keyPem.replace(/-----[^-]+-----/g, "");
  return webcrypto.subtle.importKey("pkcs8", Buffer.from(body, "base64"), KEY_ALGORITHM, false, ["sign"]);
}

function exportKey(key: webcrypto.CryptoKey): string {
  return KeyObject.from(key).export({ type: "pkcs8", format: "pem" }).toString();
}

function pemOf(certificate: X509Certificate): string {
  return `${certificate.toString("pem")}\n`;
}
