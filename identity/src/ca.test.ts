import assert from "node:assert/strict";
import { createPrivateKey, randomBytes, webcrypto, X509Certificate } from "node:crypto";
import { before, describe, it } from "node:test";
import { CA_LIFETIME_MS, CertificateAuthority, NODE_LIFETIME_MS } from "./ca.ts";
import { createKeyAndCsr } from "./csr.ts";
import { clientName, nodeId } from "./node-id.ts";
import { identityOf } from "./peer-identity.ts";
import { mergeBundles, pinsOf, spkiPin, splitCertificates } from "./pem.ts";
import {
  BasicConstraintsExtension,
  X509Certificate as Certificate,
  ExtendedKeyUsage,
  ExtendedKeyUsageExtension,
  Pkcs10CertificateRequestGenerator,
  SubjectAlternativeNameExtension,
} from "./x509.ts";

// Whole seconds, the resolution of certificates.
const NOW_MS = Date.UTC(2030, 0, 1);
const MINUTE_MS = 60_000;
const options = { nowMs: () => NOW_MS, randomBytes };
const n1 = nodeId("n1");

describe("CertificateAuthority", () => {
  let ca: CertificateAuthority;

  before(async () => {
    ca = await CertificateAuthority.create("home", options);
  });

  const leafOf = (chainPem: string) => new X509Certificate(splitCertificates(chainPem)[0] ?? "");

  it("is a self-signed P-256 root for ten years", () => {
    const root = new X509Certificate(ca.certPem);
    assert.equal(root.ca, true);
    assert.ok(root.verify(root.publicKey) && root.checkIssued(root));
    assert.equal(root.publicKey.asymmetricKeyDetails?.namedCurve, "prime256v1");
    assert.equal(root.validFromDate.getTime(), NOW_MS - 120 * MINUTE_MS);
    assert.equal(root.validToDate.getTime(), NOW_MS + CA_LIFETIME_MS);
    assert.equal(ca.pin, spkiPin(root));
  });

  it("is the same after its PEM was stored and read", async () => {
    const again = await CertificateAuthority.fromPem(ca.toPem(), options);
    assert.deepEqual([again.cluster, again.pin, again.certPem], [ca.cluster, ca.pin, ca.certPem]);
    const { chainPem } = await again.issueNode(n1, (await createKeyAndCsr()).csrPem);
    assert.ok(leafOf(chainPem).verify(new X509Certificate(ca.certPem).publicKey));
  });

  it("can't be loaded with another authority's key or from a certificate that is not an authority's", async () => {
    const other = await CertificateAuthority.create("home", options);
    const mixed = { certPem: ca.certPem, keyPem: other.toPem().keyPem };
    await assert.rejects(CertificateAuthority.fromPem(mixed, options), { code: "PAIR_MISMATCH" });
    const { chainPem, keyPem } = await ca.issueServer({ dnsNames: ["x"], ipAddresses: [] });
    await assert.rejects(CertificateAuthority.fromPem({ certPem: chainPem, keyPem }, options), {
      code: "CERTIFICATE_INVALID",
      message: /an authority's/,
    });
  });

  it("issues a node's certificate for clients only, for 30 days, backdated", async () => {
    const issued = await ca.issueNode(n1, (await createKeyAndCsr()).csrPem);
    const leaf = leafOf(issued.chainPem);
    const root = new X509Certificate(ca.certPem);
    assert.ok(leaf.checkIssued(root) && leaf.verify(root.publicKey));
    assert.equal(leaf.subject, "CN=node:n1");
    assert.equal(leaf.subjectAltName, "URI:spiffe://home/node/n1");
    assert.deepEqual(leaf.keyUsage, ["1.3.6.1.5.5.7.3.2"]);
    // Node's own `ca` is also false for an authority that lacks a key usage, so this test reads the extension.
    assert.equal(new Certificate(leaf.raw).getExtension(BasicConstraintsExtension)?.ca, false);
    assert.equal(leaf.serialNumber.toLowerCase(), issued.serial);
    assert.match(issued.serial, /^[4-7][0-9a-f]{31}$/);
    assert.equal(leaf.validFromDate.getTime(), NOW_MS - 120 * MINUTE_MS);
    assert.equal(leaf.validToDate.getTime(), NOW_MS + NODE_LIFETIME_MS);
    assert.deepEqual(
      [issued.notBeforeMs, issued.notAfterMs],
      [NOW_MS - 120 * MINUTE_MS, NOW_MS + NODE_LIFETIME_MS],
    );
    assert.equal(issued.pin, spkiPin(leaf));
    assert.deepEqual(splitCertificates(issued.chainPem).slice(1), splitCertificates(ca.certPem));
  });

  it("gives each certificate a different serial number", async () => {
    const { csrPem } = await createKeyAndCsr();
    const serials = await Promise.all(
      Array.from({ length: 5 }, async () => (await ca.issueNode(n1, csrPem)).serial),
    );
    assert.equal(new Set(serials).size, 5);
  });

  it("issues a certificate for a machine client", async () => {
    const { chainPem } = await ca.issueClient(clientName("ci"), (await createKeyAndCsr()).csrPem);
    const identity = identityOf(leafOf(chainPem).toLegacyObject());
    assert.ok(identity?.type === "client");
    assert.equal(identity.name, "ci");
  });

  it("issues a coordinator's certificate for clients only", async () => {
    const { chainPem, keyPem } = await ca.issueCoordinator("c1");
    const leaf = leafOf(chainPem);
    const identity = identityOf(leaf.toLegacyObject());
    assert.ok(identity?.type === "coordinator");
    assert.equal(identity.name, "c1");
    assert.deepEqual(leaf.keyUsage, ["1.3.6.1.5.5.7.3.2"]);
    assert.ok(leaf.checkPrivateKey(createPrivateKey(keyPem)));
    await assert.rejects(ca.issueCoordinator("a/b"), { code: "INVALID_ARGUMENT" });
  });

  it("issues a server's certificate for servers only, with its names, and the root in the chain", async () => {
    const { chainPem, keyPem } = await ca.issueServer({
      dnsNames: ["forage.lan"],
      ipAddresses: ["10.0.0.1", "fd00::1"],
    });
    const leaf = leafOf(chainPem);
    assert.equal(leaf.subjectAltName, "DNS:forage.lan, IP Address:10.0.0.1, IP Address:FD00:0:0:0:0:0:0:1");
    assert.deepEqual(leaf.keyUsage, ["1.3.6.1.5.5.7.3.1"]);
    assert.equal(leaf.ca, false);
    assert.match(keyPem, /^-----BEGIN PRIVATE KEY-----/);
    assert.equal(splitCertificates(chainPem).length, 2);
  });

  it("rejects server names that are not host names or IP addresses", async () => {
    const names = [
      { dnsNames: [], ipAddresses: [] },
      { dnsNames: ["a b"], ipAddresses: [] },
      { dnsNames: [], ipAddresses: ["10.0.0.256"] },
    ];
    for (const name of names) await assert.rejects(ca.issueServer(name), { code: "INVALID_ARGUMENT" });
  });

  it("never issues a certificate that ends after its own", async () => {
    const late = { ...options, nowMs: () => NOW_MS + CA_LIFETIME_MS - MINUTE_MS };
    const old = await CertificateAuthority.fromPem(ca.toPem(), late);
    const { notAfterMs } = await old.issueNode(n1, (await createKeyAndCsr()).csrPem);
    assert.equal(notAfterMs, NOW_MS + CA_LIFETIME_MS);
  });

  it("uses only the public key of a request", async () => {
    const algorithm = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" };
    const keys = await webcrypto.subtle.generateKey(algorithm, true, ["sign", "verify"]);
    const greedy = await Pkcs10CertificateRequestGenerator.create({
      name: "CN=node:n2, O=admins",
      keys,
      signingAlgorithm: algorithm,
      extensions: [
        new BasicConstraintsExtension(true, 3, true),
        new ExtendedKeyUsageExtension([ExtendedKeyUsage.serverAuth, ExtendedKeyUsage.clientAuth], true),
        new SubjectAlternativeNameExtension([
          { type: "dns", value: "forage.lan" },
          { type: "url", value: "spiffe://home/node/n2" },
        ]),
      ],
    });
    const leaf = leafOf((await ca.issueNode(n1, greedy.toString("pem"))).chainPem);
    assert.equal(leaf.subject, "CN=node:n1");
    assert.equal(leaf.subjectAltName, "URI:spiffe://home/node/n1");
    assert.equal(leaf.ca, false);
    assert.deepEqual(leaf.keyUsage, ["1.3.6.1.5.5.7.3.2"]);
  });

  it("rejects bad requests", async () => {
    const { csrPem } = await createKeyAndCsr();
    const der = Buffer.from(csrPem.replace(/-----[^-]+-----|\s/g, ""), "base64");
    const tampered = Buffer.from(der);
    const subject = tampered.indexOf("forage");
    assert.ok(subject > 0);
    tampered.write("forged", subject);
    await ca.issueNode(n1, der);
    for (const bad of [tampered, "", "nonsense", new Uint8Array(), new Uint8Array(20)]) {
      await assert.rejects(ca.issueNode(n1, bad), { code: "CSR_INVALID" });
    }
    await assert.rejects(ca.issueNode(n1, csrPem.padEnd(10_000)), {
      code: "CSR_INVALID",
      message: /too long/,
    });
  });

  it("rejects keys of other types", async () => {
    const kinds = [
      { name: "ECDSA", namedCurve: "P-384", hash: "SHA-384" },
      {
        name: "RSASSA-PKCS1-v1_5",
        hash: "SHA-256",
        publicExponent: new Uint8Array([1, 0, 1]),
        modulusLength: 2048,
      },
    ];
    for (const kind of kinds) {
      const keys = (await webcrypto.subtle.generateKey(kind, true, [
        "sign",
        "verify",
      ])) as webcrypto.CryptoKeyPair;
      const csr = await Pkcs10CertificateRequestGenerator.create({
        name: "CN=x",
        keys,
        signingAlgorithm: kind,
      });
      await assert.rejects(ca.issueNode(n1, csr.toString("pem")), { code: "CSR_INVALID" });
    }
  });

  it("can be replaced: a bundle of two authorities has both pins, each once", async () => {
    const next = await CertificateAuthority.create("home", options);
    const bundle = mergeBundles(ca.certPem, next.certPem, ca.certPem);
    assert.deepEqual(pinsOf(bundle), [ca.pin, next.pin]);
    assert.notEqual(new X509Certificate(ca.certPem).subject, new X509Certificate(next.certPem).subject);
  });
});
