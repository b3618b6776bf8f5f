import assert from "node:assert/strict";
import { createPrivateKey, X509Certificate } from "node:crypto";
import { type TestContext, test } from "node:test";
import { IssueError } from "../../src/certificates/issue-error.ts";
import type { Issuer, NewCertificate } from "../../src/certificates/issuer.ts";

export interface IssuerUnderTest {
  readonly issuer: Issuer;
  /** Returns the wall-clock time by which certificates are valid. */
  readonly nowMs: () => number;
  /** Returns the hostnames of the certificate. Throws if its key does not match. */
  readonly hostnamesOf: (certificate: NewCertificate) => readonly string[];
  /** Makes the authority unable to issue certificates from now on. */
  readonly stop: () => void | Promise<void>;
}

const HOST = "a.example.test";
const OTHER = "b.example.test";
/** Certificates store times in whole seconds. */
const SECOND_MS = 1_000;

/** The contract of every Issuer. `make` creates one with its own authority for each test. */
export function testIssuer(name: string, make: (t: TestContext) => Promise<IssuerUnderTest>): void {
  const check = (what: string, run: (it: IssuerUnderTest) => Promise<void>) =>
    test(`${name}: ${what}`, { timeout: 120_000 }, async (t) => run(await make(t)));
  const issue = ({ issuer }: IssuerUnderTest, hostname = HOST): Promise<NewCertificate> =>
    issuer.issue(hostname, new AbortController().signal);

  check("certifies the hostname and no other, and the certificate is valid at once", async (it) => {
    const certificate = await issue(it);
    assert.deepEqual(it.hostnamesOf(certificate), [HOST]);
    const { notBeforeMs, notAfterMs } = certificate;
    assert.ok(notBeforeMs <= it.nowMs() && it.nowMs() + SECOND_MS < notAfterMs);
  });

  check("gives each certificate a key of its own", async (it) => {
    const certificates = await Promise.all([issue(it), issue(it), issue(it, OTHER)]);
    assert.equal(new Set(certificates.map(({ keyPem }) => keyPem)).size, 3);
    assert.equal(new Set(certificates.map(({ chainPem }) => chainPem)).size, 3);
    assert.deepEqual(certificates.map(it.hostnamesOf), [[HOST], [HOST], [OTHER]]);
  });

  check("has a name, and works at one order at least", async ({ issuer }) => {
    assert.ok(issuer.id !== "" && issuer.name !== "");
    assert.ok(Number.isInteger(issuer.atOnce) && issuer.atOnce >= 1);
  });

  check("refuses a route for every hostname with the reason", async ({ issuer }) => {
    assert.equal(issuer.refusalOf(HOST), undefined);
    for (const hostname of ["", "*"]) assert.match(issuer.refusalOf(hostname) ?? "", /tls\.certificate_ref/);
  });

  check("blames itself, and no hostname, when its authority can't issue", async (it) => {
    await it.stop();
    await assert.rejects(issue(it), (error) => {
      assert.ok(error instanceof IssueError, String(error));
      assert.equal(error.blame, "issuer");
      return true;
    });
  });
}

/** Returns the hostnames of an X.509 certificate. Throws if its key does not match. */
export function hostnamesOfPem({ chainPem, keyPem }: NewCertificate): string[] {
  const leaf = new X509Certificate(chainPem);
  assert.ok(leaf.checkPrivateKey(createPrivateKey(keyPem)));
  return (leaf.subjectAltName ?? "").split(", ").map((name) => name.replace(/^DNS:/, ""));
}
