import assert from "node:assert/strict";
import { before, describe, it } from "node:test";
import { aNode, anAuthority } from "../test/cluster.ts";
import type { CertificateAuthority } from "./ca.ts";
import { bearerMetadata, channelCredentials } from "./credentials.ts";

describe("channelCredentials", () => {
  let ca: CertificateAuthority;

  before(async () => {
    ca = await anAuthority();
  });

  it("are secure, with and without a client's certificate", async () => {
    assert.ok(channelCredentials({ caPem: ca.certPem })._isSecure());
    const { certPem, keyPem } = await aNode(ca);
    assert.ok(channelCredentials({ caPem: ca.certPem, certPem, keyPem })._isSecure());
  });

  it("trust no authority by default", () => {
    assert.throws(() => channelCredentials({ caPem: "" }), { code: "CERTIFICATE_INVALID" });
  });

  it("require both halves of a pair, which must match", async () => {
    const [one, two] = [await aNode(ca), await aNode(ca)];
    const caPem = ca.certPem;
    assert.throws(() => channelCredentials({ caPem, certPem: one.certPem }), { code: "INVALID_ARGUMENT" });
    assert.throws(() => channelCredentials({ caPem, keyPem: one.keyPem }), { code: "INVALID_ARGUMENT" });
    assert.throws(() => channelCredentials({ caPem, certPem: one.certPem, keyPem: two.keyPem }), {
      code: "PAIR_MISMATCH",
    });
  });
});

describe("bearerMetadata", () => {
  it("contains the token as a bearer token", () => {
    assert.deepEqual(bearerMetadata("flt_x").get("authorization"), ["Bearer flt_x"]);
  });
});
