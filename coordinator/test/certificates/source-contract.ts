import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import type { CertificateSource } from "../../src/gateway/certificate-source.ts";
import { until } from "../support/until.ts";

export interface CertificateSourceUnderTest {
  readonly source: CertificateSource;
  /** Makes the source obtain the certificate of a requested hostname. */
  readonly issue: (hostname: string) => Promise<void>;
}

const HOST = "a.test";
const OTHER = "b.test";

/**
 * The contract of every CertificateSource that provides certificates. `make` creates one without
 * any for each test.
 */
export function testCertificateSource(
  name: string,
  make: (t: TestContext) => Promise<CertificateSourceUnderTest>,
): void {
  const check = (what: string, run: (it: CertificateSourceUnderTest) => Promise<void>) =>
    test(`${name}: ${what}`, { timeout: 60_000 }, async (t) => run(await make(t)));

  check("a hostname without a certificate is pending, with a reason in CamelCase", async ({ source }) => {
    source.setHostnames(new Set([HOST]));
    const certificate = source.certificateFor(HOST);
    assert.ok(certificate.type === "pending");
    assert.match(certificate.reason, /^[A-Z][A-Za-z]+$/);
    assert.deepEqual(source.challenges(), []);
  });

  check("reports an issued certificate to subscribers, until they stop", async ({ source, issue }) => {
    let calls = 0;
    let issued = "";
    const stop = source.subscribe(() => calls++);
    source.subscribe(() => {
      const certificate = source.certificateFor(HOST);
      if (certificate.type === "issued") issued = certificate.chainPem;
    });
    source.setHostnames(new Set([HOST]));
    source.served(new Set());
    await issue(HOST);
    await until("the certificate is reported", () => issued !== "");
    assert.ok(calls > 0);
    stop();
    const before = calls;
    source.setHostnames(new Set([HOST, OTHER]));
    issued = "";
    await issue(OTHER);
    await until("the second certificate is reported", () => issued !== "");
    assert.equal(calls, before);
  });
}
