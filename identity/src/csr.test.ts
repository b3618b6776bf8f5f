import assert from "node:assert/strict";
import { createPrivateKey, createPublicKey } from "node:crypto";
import { describe, it } from "node:test";
import { createKeyAndCsr, der } from "./csr.ts";
import { publicKeyOfCsr } from "./verify-csr.ts";
import { Pkcs10CertificateRequest } from "./x509.ts";

describe("der", () => {
  for (const [length, head] of [
    [0, "04 00"],
    [127, "04 7f"],
    [128, "04 81 80"],
    [255, "04 81 ff"],
    [256, "04 82 01 00"],
    [65_535, "04 82 ff ff"],
  ] as const)
    it(`encodes a length of ${length} in as few bytes as DER requires`, () => {
      const encoded = der(0x04, Buffer.alloc(length, 1));
      const expected = Buffer.from(head.replaceAll(" ", ""), "hex");
      assert.deepEqual(encoded.subarray(0, expected.length), expected);
      assert.equal(encoded.length, expected.length + length);
    });
});

describe("createKeyAndCsr", () => {
  it("makes a request that a library can parse and that the returned key has signed", async () => {
    const { keyPem, csrPem } = await createKeyAndCsr();
    const spki = createPublicKey(createPrivateKey(keyPem)).export({ type: "spki", format: "der" });
    assert.deepEqual(Buffer.from(await publicKeyOfCsr(csrPem)), spki);
    const request = new Pkcs10CertificateRequest(csrPem);
    assert.equal(request.subject, "CN=forage");
    assert.equal(request.attributes.length, 0);
  });

  it("makes a different key each time, and always a request that the authority can parse", async () => {
    // Signatures vary in length with their leading zeros. 64 of them cover all lengths but the rarest.
    const pairs = await Promise.all(Array.from({ length: 64 }, createKeyAndCsr));
    await Promise.all(pairs.map(({ csrPem }) => publicKeyOfCsr(csrPem)));
    assert.equal(new Set(pairs.map(({ keyPem }) => keyPem)).size, 64);
  });

  it("makes a request without the private key", async () => {
    const { keyPem, csrPem } = await createKeyAndCsr();
    const secret = createPrivateKey(keyPem).export({ format: "jwk" }).d ?? "";
    const csr = Buffer.from(csrPem.replace(/-----[^-]+-----|\s/g, ""), "base64");
    assert.ok(secret.length > 0 && !csr.includes(Buffer.from(secret, "base64url")));
  });
});
