import { createPrivateKey, hkdfSync, KeyObject, webcrypto, type X509Certificate } from "node:crypto";
import { isIP } from "node:net";
import { IdentityError } from "./error.ts";
import type { ClientName, ClusterName, NodeId } from "./node-id.ts";
import { clusterName, isName } from "./node-id.ts";
import { readCertificate, spkiPin, splitCertificates } from "./pem.ts";
import { publicKeyOfCsr } from "./verify-csr.ts";
import {
  AuthorityKeyIdentifierExtension,
  BasicConstraintsExtension,
  X509Certificate as Certificate,
  ExtendedKeyUsage,
  ExtendedKeyUsageExtension,
  type Extension,
  type JsonGeneralNames,
  KeyUsageFlags,
  KeyUsagesExtension,
  SubjectAlternativeNameExtension,
  SubjectKeyIdentifierExtension,
  X509CertificateGenerator,
} from "./x509.ts";

const KEY_ALGORITHM = { name: "ECDSA", namedCurve: "P-256" } as const;
const SIGNATURE_ALGORITHM = { name: "ECDSA", hash: "SHA-256" } as const;

const DAY_MS = 24 * 60 * 60 * 1000;
/**
 * Certificates are valid from two hours before they are issued. Hosts' clocks may be slow, or the coordinator's clock
 * fast, by an hour after a missed change of the local time, and a little more.
 */
const BACKDATE_MS = 2 * 60 * 60 * 1000;

export const CA_LIFETIME_MS = 3650 * DAY_MS;
/** A site may lose its coordinator for weeks. A stolen key is handled by revoking its node. */
export const NODE_LIFETIME_MS = 30 * DAY_MS;
export const CLIENT_LIFETIME_MS = DAY_MS;
/** The coordinator renews its own certificate. Clients store the authority's certificate, not this one. */
export const SERVER_LIFETIME_MS = 30 * DAY_MS;

/** Leaves room for `coordinator:` in a common name of 64 characters. */
const COORDINATOR_NAME_MAX = 52;

export interface CaOptions {
  /** Milliseconds since the epoch. */
  readonly nowMs: () => number;
  /** Returns `count` cryptographically random bytes, used for serial numbers. */
  readonly randomBytes: (count: number) => Uint8Array;
}

/** A certificate in the form in which it is stored and sent. */
export interface IssuedCertificate {
  /** The certificate followed by the authority's own. Servers must send the root because `probeServer` reads it. */
  readonly chainPem: string;
  /** 32 lower-case hex digits. */
  readonly serial: string;
  readonly notBeforeMs: number;
  readonly notAfterMs: number;
  /** Pin of the certified key. It is recorded to recognize a repeated join by its key. */
  readonly pin: string;
  /** Pin of the authority that issued the certificate. */
  readonly authorityPin: string;
}

export interface ServerNames {
  readonly dnsNames: readonly string[];
  readonly ipAddresses: readonly string[];
}

/** A cluster's certificate authority: P-256, self-signed, path length 0. Keeps the signing key in memory. */
export class CertificateAuthority {
  readonly cluster: ClusterName;
  /** The root certificate in PEM. */
  readonly certPem: string;
  /** The pin of the authority's key, which join tokens contain. */
  readonly pin: string;
  readonly #keyPem: string;
  /** The derived secrets by purpose, of which there are few. */
  readonly #secrets = new Map<string, Buffer>();
  readonly #signingKey: webcrypto.CryptoKey;
  readonly #issuer: webcrypto.CryptoKey;
  readonly #options: CaOptions;

  private constructor(certPem: string, keyPem: string, keys: webcrypto.CryptoKeyPair, options: CaOptions) {
    const certificate = readCertificate(certPem);
    this.cluster = clusterOf(certificate);
    this.certPem = certPem;
    this.pin = spkiPin(certificate);
    this.#keyPem = keyPem;
    this.#signingKey = keys.privateKey;
    this.#issuer = keys.publicKey;
    this.#options = options;
  }

  /** Makes a new authority that is valid for ten years. */
  static async create(cluster: string, options: CaOptions): Promise<CertificateAuthority> {
    const keys = await createKeyPair();
    const nowMs = options.nowMs();
    const serial = randomSerial(options);
    const certificate = await X509CertificateGenerator.createSelfSigned({
      serialNumber: serial,
      // Two authorities of one cluster need different names: while one replaces the other, verifiers find issuers by
      // name.
      name: [{ O: ["Forage"] }, { CN: [`CA ${serial.slice(0, 8)}`] }],
      notBefore: new Date(nowMs - BACKDATE_MS),
      notAfter: new Date(nowMs + CA_LIFETIME_MS),
      keys,
      signingAlgorithm: SIGNATURE_ALGORITHM,
      extensions: [
        new BasicConstraintsExtension(true, 0, true),
        new KeyUsagesExtension(KeyUsageFlags.keyCertSign | KeyUsageFlags.cRLSign, true),
        await SubjectKeyIdentifierExtension.create(keys.publicKey),
        new SubjectAlternativeNameExtension([{ type: "url", value: `spiffe://${clusterName(cluster)}` }]),
      ],
    });
    return new CertificateAuthority(pemOf(certificate), exportKey(keys.privateKey), keys, options);
  }

  /**
   * Reads an authority from the text that `toPem` returned. @throws IdentityError PAIR_MISMATCH, CERTIFICATE_INVALID.
   */
  static async fromPem(
    pem: { readonly certPem: string; readonly keyPem: string },
    options: CaOptions,
  ): Promise<CertificateAuthority> {
    const certPem = splitCertificates(pem.certPem)[0] ?? "";
    const certificate = readCertificate(certPem);
    const key = createPrivateKey(pem.keyPem);
    if (!certificate.ca)
      throw new IdentityError("CERTIFICATE_INVALID", "the certificate isn't an authority's");
    if (!certificate.checkPrivateKey(key)) {
      throw new IdentityError("PAIR_MISMATCH", "the authority's key doesn't belong to its certificate");
    }
    const privateKey = await webcrypto.subtle.importKey(
      "pkcs8",
      key.export({ type: "pkcs8", format: "der" }),
      KEY_ALGORITHM,
      true,
      ["sign"],
    );
    const publicKey = await importPublicKey(certificate.publicKey.export({ type: "spki", format: "der" }));
    return new CertificateAuthority(certPem, pem.keyPem, { privateKey, publicKey }, options);
  }

  /** Returns a secret of 32 bytes for one purpose, derived from the authority's key. */
  deriveSecret(purpose: string): Buffer {
    const known = this.#secrets.get(purpose);
    if (known !== undefined) return known;
    const secret = Buffer.from(hkdfSync("sha256", this.#keyPem, "", `forage ${purpose}`, 32));
    this.#secrets.set(purpose, secret);
    return secret;
  }

  /** Returns the same secret in a list. An authority that represents several returns one for each. */
  deriveSecrets(purpose: string): readonly Uint8Array[] {
    return [this.deriveSecret(purpose)];
  }

  /** Returns the certificate and the private key, to be stored in a file that only the coordinator can read. */
  toPem(): { readonly certPem: string; readonly keyPem: string } {
    return { certPem: this.certPem, keyPem: this.#keyPem };
  }

  /**
   * Issues a certificate for a server of this cluster and makes its key. The certificate is for `serverAuth` only. At
   * least one name is required.
   */
  async issueServer(
    names: ServerNames,
    lifetimeMs = SERVER_LIFETIME_MS,
  ): Promise<IssuedCertificate & { readonly keyPem: string }> {
    const first = names.dnsNames[0] ?? names.ipAddresses[0];
    if (first === undefined) throw new IdentityError("INVALID_ARGUMENT", "a server certificate needs a name");
    const keys = await createKeyPair();
    const issued = await this.#issue({
      commonName: "forage-coordinator",
      alternativeNames: serverAlternativeNames(names),
      usage: ExtendedKeyUsage.serverAuth,
      publicKey: keys.publicKey,
      lifetimeMs,
    });
    return { ...issued, keyPem: exportKey(keys.privateKey) };
  }

  /**
   * Issues a node's certificate, for `clientAuth` only, for the public key of a signing request. Ignores the request's
   * subject and extensions. @throws IdentityError CSR_INVALID if the request isn't signed with its key.
   */
  async issueNode(
    id: NodeId,
    csr: string | Uint8Array,
    lifetimeMs = NODE_LIFETIME_MS,
  ): Promise<IssuedCertificate> {
    return await this.#issueIdentity("node", id, csr, lifetimeMs);
  }

  /** Issues the certificate of a machine that calls the API, in the same way as `issueNode`. */
  async issueClient(
    name: ClientName,
    csr: string | Uint8Array,
    lifetimeMs = CLIENT_LIFETIME_MS,
  ): Promise<IssuedCertificate> {
    return await this.#issueIdentity("client", name, csr, lifetimeMs);
  }

  /** Issues a certificate, and makes its key, with which a standby coordinator authenticates to the leader. */
  async issueCoordinator(
    name: string,
    lifetimeMs = SERVER_LIFETIME_MS,
  ): Promise<IssuedCertificate & { readonly keyPem: string }> {
    if (!isName(name) || name.length > COORDINATOR_NAME_MAX)
      throw new IdentityError("INVALID_ARGUMENT", `${JSON.stringify(name)} isn't a coordinator's name`);
    const keys = await createKeyPair();
    const issued = await this.#issue({
      commonName: `coordinator:${name}`,
      alternativeNames: [{ type: "url", value: `spiffe://${this.cluster}/coordinator/${name}` }],
      usage: ExtendedKeyUsage.clientAuth,
      publicKey: keys.publicKey,
      lifetimeMs,
    });
    return { ...issued, keyPem: exportKey(keys.privateKey) };
  }

  async #issueIdentity(
    kind: "node" | "client",
    name: string,
    csr: string | Uint8Array,
    lifetimeMs: number,
  ): Promise<IssuedCertificate> {
    return await this.#issue({
      commonName: `${kind}:${name}`,
      alternativeNames: [{ type: "url", value: `spiffe://${this.cluster}/${kind}/${name}` }],
      usage: ExtendedKeyUsage.clientAuth,
      publicKey: await importPublicKey(await publicKeyOfCsr(csr)),
      lifetimeMs,
    });
  }

  async #issue(what: {
    readonly commonName: string;
    readonly alternativeNames: JsonGeneralNames;
    readonly usage: ExtendedKeyUsage;
    readonly publicKey: webcrypto.CryptoKey;
    readonly lifetimeMs: number;
  }): Promise<IssuedCertificate> {
    const nowMs = this.#options.nowMs();
    const root = new Certificate(this.certPem);
    const serial = randomSerial(this.#options);
    const extensions: Extension[] = [
      new BasicConstraintsExtension(false, undefined, true),
      new KeyUsagesExtension(KeyUsageFlags.digitalSignature, true),
      new ExtendedKeyUsageExtension([what.usage], false),
      new SubjectAlternativeNameExtension(what.alternativeNames),
      await SubjectKeyIdentifierExtension.create(what.publicKey),
      await AuthorityKeyIdentifierExtension.create(this.#issuer),
    ];
    const certificate = await X509CertificateGenerator.create({
      serialNumber: serial,
      subject: [{ CN: [what.commonName] }],
      issuer: root.subjectName,
      notBefore: new Date(nowMs - BACKDATE_MS),
      // If a certificate ended after its authority, its last days would fail for no apparent reason.
      notAfter: new Date(Math.min(nowMs + what.lifetimeMs, root.notAfter.getTime())),
      publicKey: what.publicKey,
      signingKey: this.#signingKey,
      signingAlgorithm: SIGNATURE_ALGORITHM,
      extensions,
    });
    const pem = pemOf(certificate);
    return {
      chainPem: pem + this.certPem,
      serial,
      notBeforeMs: certificate.notBefore.getTime(),
      notAfterMs: certificate.notAfter.getTime(),
      pin: spkiPin(readCertificate(pem)),
      authorityPin: this.pin,
    };
  }
}

/** Returns 126 random bits as a positive serial number of 32 digits, which all tools print alike. */
function randomSerial(options: CaOptions): string {
  const bytes = Buffer.from(options.randomBytes(16));
  bytes.writeUInt8((bytes.readUInt8(0) & 0x3f) | 0x40, 0);
  return bytes.toString("hex");
}

function serverAlternativeNames(names: ServerNames): JsonGeneralNames {
  for (const name of names.dnsNames) {
    if (!/^[A-Za-z0-9*]([A-Za-z0-9.-]{0,252})$/.test(name)) {
      throw new IdentityError("INVALID_ARGUMENT", `${JSON.stringify(name)} isn't a host name`);
    }
  }
  for (const address of names.ipAddresses) {
    if (isIP(address) === 0)
      throw new IdentityError("INVALID_ARGUMENT", `${JSON.stringify(address)} isn't an IP address`);
  }
  return [
    ...names.dnsNames.map((value) => ({ type: "dns" as const, value })),
    ...names.ipAddresses.map((value) => ({ type: "ip" as const, value })),
  ];
}

function clusterOf(certificate: X509Certificate): ClusterName {
  const match = /^URI:spiffe:\/\/([^/,]+)$/.exec(certificate.subjectAltName ?? "");
  if (match?.[1] === undefined)
    throw new IdentityError("CERTIFICATE_INVALID", "the authority names no cluster");
  return clusterName(match[1]);
}

async function importPublicKey(spki: Uint8Array): Promise<webcrypto.CryptoKey> {
  return await webcrypto.subtle.importKey("spki", Uint8Array.from(spki), KEY_ALGORITHM, true, ["verify"]);
}

function pemOf(certificate: { toString(format: "pem"): string }): string {
  return `${certificate.toString("pem")}\n`;
}

async function createKeyPair(): Promise<webcrypto.CryptoKeyPair> {
  return await webcrypto.subtle.generateKey(KEY_ALGORITHM, true, ["sign", "verify"]);
}

function exportKey(key: webcrypto.CryptoKey): string {
  return KeyObject.from(key).export({ type: "pkcs8", format: "pem" }).toString();
}
